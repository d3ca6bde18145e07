export const IDENTITY = {
  name: 'parcel-store',
  title: 'Parcel Store Service',
  description: 'Parcels that wait to be collected, and where they were scanned.',
  interfaceVersion: '2.3.0',
  keyPrefix: 'ps_',
  metricsPrefix: 'parcel_store_',
  embedded: { database: 'parcel_store', systemDir: '/var/lib/parcel-store' },
  mainTable: 'parcels',
  grants: {
    parcels: ['SELECT', 'INSERT', 'UPDATE'],
    scans: ['SELECT', 'INSERT'],
  },
  mainPath: '/parcels',
  mainOperation: 'listParcels',
} as const;

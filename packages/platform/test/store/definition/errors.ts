export const ERRORS = {
  parcel_collected: {
    status: 409,
    trpcCode: 'CONFLICT',
    message: 'The parcel was collected.',
    description: 'the parcel was collected',
    advice: 'To find another parcel, call listParcels with a `status` of `waiting`.',
  },
} as const;

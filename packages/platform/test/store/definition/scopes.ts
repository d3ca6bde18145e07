export const SCOPES = ['parcels:read', 'parcels:write', 'scans:read'] as const;

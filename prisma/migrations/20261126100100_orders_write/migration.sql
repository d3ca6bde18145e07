-- Placing orders is new: keys that exist already do not get it.
ALTER TABLE "api_keys" DROP CONSTRAINT "api_keys_scopes_known";
-- One or more known scopes: an empty array and NULL have no dimension. A key that may do nothing is a revoked one.
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_scopes_known" CHECK (
    array_ndims("scopes") IS NOT DISTINCT FROM 1
    AND "scopes" <@ ARRAY['pets:read', 'pets:write', 'orders:read', 'orders:write']::TEXT[]
);
ALTER TABLE "api_keys" ALTER COLUMN "scopes" SET DEFAULT ARRAY['pets:read', 'pets:write', 'orders:read', 'orders:write']::TEXT[];

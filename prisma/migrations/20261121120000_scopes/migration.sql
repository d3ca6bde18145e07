-- What a key allows. The default gives existing keys, and those that nodes of the version before create, every scope.
ALTER TABLE "api_keys"
    ADD COLUMN "scopes" TEXT[] DEFAULT ARRAY['pets:read', 'pets:write', 'orders:read']::TEXT[],
    -- One or more known scopes: an empty array and NULL have no dimension. A key that may do nothing is a revoked one.
    ADD CONSTRAINT "api_keys_scopes_known" CHECK (
        array_ndims("scopes") IS NOT DISTINCT FROM 1
        AND "scopes" <@ ARRAY['pets:read', 'pets:write', 'orders:read']::TEXT[]
    );

-- The rules that every store of the platform has. Keys keep them already, because those of this store are stricter: which plan has
-- limits of its own, and which scopes there are.
ALTER TABLE "api_keys"
    ADD CONSTRAINT "api_keys_per_minute_bounds" CHECK ("per_minute" > 0),
    ADD CONSTRAINT "api_keys_per_day_bounds" CHECK ("per_day" > 0),
    ADD CONSTRAINT "api_keys_scopes_not_empty" CHECK (array_ndims("scopes") IS NOT DISTINCT FROM 1);

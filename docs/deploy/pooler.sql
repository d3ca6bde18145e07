-- The settings of the service's role `store` behind a pooler in transaction mode, which keeps none for a client. With
-- ?schema= in DATABASE_URL, its name instead of public.
ALTER ROLE store SET TimeZone = 'UTC';
ALTER ROLE store SET DateStyle = 'ISO, MDY';
ALTER ROLE store SET search_path = public, pg_temp;
ALTER ROLE store SET extra_float_digits = 1;
ALTER ROLE store SET standard_conforming_strings = 'on';
ALTER ROLE store SET default_transaction_isolation = 'read committed';
ALTER ROLE store SET statement_timeout = '1200ms';
ALTER ROLE store SET idle_in_transaction_session_timeout = '5s';
ALTER ROLE store SET plan_cache_mode = 'force_generic_plan';
ALTER ROLE store SET enable_seqscan = 'off';
ALTER ROLE store SET enable_sort = 'off';
ALTER ROLE store SET enable_incremental_sort = 'off';
ALTER ROLE store SET jit = 'off';

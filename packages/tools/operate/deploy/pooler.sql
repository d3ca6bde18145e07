-- The settings of the service's role behind a pooler in transaction mode, which keeps few of them for a client. With ?schema= in
-- DATABASE_URL, take its name instead of public. As a superuser: psql --file docs/deploy/pooler.sql postgres
ALTER ROLE my_store SET TimeZone = 'UTC';
ALTER ROLE my_store SET DateStyle = 'ISO, MDY';
ALTER ROLE my_store SET search_path = public, pg_temp;
ALTER ROLE my_store SET extra_float_digits = 1;
ALTER ROLE my_store SET standard_conforming_strings = 'on';
ALTER ROLE my_store SET default_transaction_isolation = 'read committed';
ALTER ROLE my_store SET statement_timeout = '1200ms';
ALTER ROLE my_store SET idle_in_transaction_session_timeout = '5s';
ALTER ROLE my_store SET plan_cache_mode = 'force_generic_plan';
ALTER ROLE my_store SET enable_seqscan = 'off';
ALTER ROLE my_store SET enable_sort = 'off';
ALTER ROLE my_store SET enable_incremental_sort = 'off';
ALTER ROLE my_store SET jit = 'off';

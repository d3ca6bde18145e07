-- The database and its two roles: the owner, who migrates, and the role of the service, to which migrate grants the least
-- that it needs. With a KEYS_PASSWORD there is a third one, that of `keys serve`. Run it once, as a superuser:
--
--   OWNER_PASSWORD=… SERVICE_PASSWORD=… psql --file docs/deploy/roles.sql postgres
\set ON_ERROR_STOP on
\getenv owner_password OWNER_PASSWORD
\getenv service_password SERVICE_PASSWORD
\getenv keys_password KEYS_PASSWORD

CREATE ROLE animal_store_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE animal_store LOGIN PASSWORD :'service_password';
\if :{?keys_password}
CREATE ROLE animal_store_keys LOGIN PASSWORD :'keys_password';
\endif
-- A copy of template1 would keep the encoding of the cluster, whichever that is.
CREATE DATABASE animal_store ENCODING 'UTF8' TEMPLATE template0 OWNER animal_store_owner;

\connect animal_store
-- The default from PostgreSQL 15 on; before, every role may create tables there.
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT CREATE ON SCHEMA public TO animal_store_owner;

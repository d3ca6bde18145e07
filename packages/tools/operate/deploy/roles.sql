-- The database and its two roles: the owner, who migrates, and the role of the service, to which migrate grants the least
-- that it needs. With a KEYS_PASSWORD there is a third one, that of `keys serve`. Run it once, as a superuser:
--
--   OWNER_PASSWORD=… SERVICE_PASSWORD=… psql --file docs/deploy/roles.sql postgres
\set ON_ERROR_STOP on
\getenv owner_password OWNER_PASSWORD
\getenv service_password SERVICE_PASSWORD
\getenv keys_password KEYS_PASSWORD

-- A connection that a firewall cuts silently counts against max_connections and CONNECTION LIMIT until PostgreSQL notices,
-- which would take it two hours. tcp_user_timeout also ends a session whose client stops reading, as pg_dump does while its disk
-- stalls, so the owner's is longer. A server whose system has no such timeout logs that, and goes on.
CREATE ROLE my_store_owner LOGIN PASSWORD :'owner_password';
ALTER ROLE my_store_owner SET tcp_keepalives_idle = 10;
ALTER ROLE my_store_owner SET tcp_keepalives_interval = 5;
ALTER ROLE my_store_owner SET tcp_keepalives_count = 3;
ALTER ROLE my_store_owner SET tcp_user_timeout = '5min';
CREATE ROLE my_store LOGIN PASSWORD :'service_password';
ALTER ROLE my_store SET tcp_keepalives_idle = 10;
ALTER ROLE my_store SET tcp_keepalives_interval = 5;
ALTER ROLE my_store SET tcp_keepalives_count = 3;
ALTER ROLE my_store SET tcp_user_timeout = '20s';
\if :{?keys_password}
CREATE ROLE my_store_keys LOGIN PASSWORD :'keys_password';
ALTER ROLE my_store_keys SET tcp_keepalives_idle = 10;
ALTER ROLE my_store_keys SET tcp_keepalives_interval = 5;
ALTER ROLE my_store_keys SET tcp_keepalives_count = 3;
ALTER ROLE my_store_keys SET tcp_user_timeout = '20s';
\endif
-- A copy of template1 would keep the encoding of the cluster, whichever that is.
CREATE DATABASE my_store ENCODING 'UTF8' TEMPLATE template0 OWNER my_store_owner;

\connect my_store
-- The default from PostgreSQL 15 on; before, every role may create tables there.
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT CREATE ON SCHEMA public TO my_store_owner;

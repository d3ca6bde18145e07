#!/bin/sh
# Runs roles.sql once, when compose.yaml's volume of PostgreSQL is created.
OWNER_PASSWORD=$(cat /run/secrets/owner-password) SERVICE_PASSWORD=$(cat /run/secrets/service-password) \
  KEYS_PASSWORD=$(cat /run/secrets/keys-password) \
  psql --no-psqlrc --username postgres --file /roles.sql postgres

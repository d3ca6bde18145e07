#!/bin/sh
# Makes the folder of secrets that compose.yaml reads, with random passwords:
#
#   sh docs/deploy/make-secrets.sh ./secrets
#
# Only its owner may enter the folder. The files are readable in it, because each container has a user of its own.
set -eu
folder=${1:?name the folder of the secrets}
[ ! -e "$folder" ] || { echo "$folder exists already: nothing was changed" >&2; exit 1; }
mkdir -m 700 "$folder"
cd "$folder"
for name in postgres-password owner-password service-password keys-password keys-token; do
  od -An -N 16 -t x1 /dev/urandom | tr -d ' \n' >"$name"
done
echo "postgresql://my_store_owner:$(cat owner-password)@postgres:5432/my_store" >owner-database-url
echo "postgresql://my_store:$(cat service-password)@postgres:5432/my_store" >database-url
echo "postgresql://my_store_keys:$(cat keys-password)@postgres:5432/my_store" >keys-database-url
echo redis://valkey:6379 >redis-url
chmod 444 ./*

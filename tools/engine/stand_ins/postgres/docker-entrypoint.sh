#!/bin/sh
# As the official image does: the first start sets the database up with a server that listens on the socket alone.
set -eu
if [ "$1" = postgres ] && [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA"
    chown -R postgres:postgres /var/lib/postgresql
    exec setpriv --reuid postgres --regid postgres --init-groups "$0" "$@"
fi
if [ "$1" = postgres ] && ! [ -s "$PGDATA/PG_VERSION" ]; then
    user=${POSTGRES_USER:-postgres}
    database=${POSTGRES_DB:-$user}
    file=$(mktemp)
    printf '%s\n' "${POSTGRES_PASSWORD:?is not set}" >"$file"
    initdb --username="$user" --pwfile="$file" --auth-local=trust --auth-host=scram-sha-256 "$PGDATA"
    rm "$file"
    echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
    echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
    pg_ctl -D "$PGDATA" -o "-c listen_addresses=''" -w start
    if [ "$database" != postgres ]; then
        createdb --username="$user" --maintenance-db=postgres "$database"
    fi
    pg_ctl -D "$PGDATA" -m fast -w stop
fi
exec "$@"

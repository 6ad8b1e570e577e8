#!/bin/sh
# As the official image does: the server runs as its own user.
set -eu
if [ "$1" = rabbitmq-server ] && [ "$(id -u)" = 0 ]; then
    chown -R rabbitmq:rabbitmq /var/lib/rabbitmq
    exec setpriv --reuid rabbitmq --regid rabbitmq --init-groups "$0" "$@"
fi
exec "$@"

#!/bin/sh
# The entry point of the broker in docker-compose.yml: puts the passwords of the environment into deploy/roles/rabbitmq.json,
# which RabbitMQ then loads at every start, and starts it. Passwords are letters and digits, - and _.
set -eu

filled=/var/lib/rabbitmq/definitions.json
script='s/@PREFIX@//g'
for name in RABBITMQ CONSUMER PRODUCER DELIVERY READER CONSOLE APPLICATION; do
    eval "password=\${${name}_PASSWORD:?is not set}"
    case $password in
    *[!A-Za-z0-9_-]*) echo "${name}_PASSWORD: may have letters, digits, - and _ only" >&2 && exit 1 ;;
    esac
    script="$script;s/@${name}_PASSWORD@/$password/"
done
(umask 077 && sed "$script" "${ROLES:-/roles/rabbitmq.json}" >"${FILLED:-$filled}")
if [ "$(id -u)" = 0 ] && id rabbitmq >/dev/null 2>&1; then
    chown rabbitmq "${FILLED:-$filled}"
fi
exec "$@"

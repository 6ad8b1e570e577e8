#!/bin/sh
# The entry point of the broker in docker-compose.yml: puts the passwords of the environment into deploy/roles/rabbitmq.json,
# which RabbitMQ then loads at every start, and starts it. Passwords are letters and digits, - and _.
set -eu

data=${DATA:-/var/lib/rabbitmq}
filled=${FILLED:-$data/definitions.json}
cookie=$data/.erlang.cookie
script='s/@PREFIX@//g'
for name in RABBITMQ CONSUMER PRODUCER DELIVERY READER CONSOLE APPLICATION; do
    eval "password=\${${name}_PASSWORD:?is not set}"
    case $password in
    *[!A-Za-z0-9_-]*) echo "${name}_PASSWORD: may have letters, digits, - and _ only" >&2 && exit 1 ;;
    esac
    script="$script;s/@${name}_PASSWORD@/$password/"
done
(umask 077 && sed "$script" "${ROLES:-/roles/rabbitmq.json}" >"$filled")
# If a health check, which runs as root, comes before the server on a slow machine, it makes Erlang's cookie, which the
# server then may not read: so it is there before both.
if [ -z "${FILLED:-}" ]; then
    if ! [ -e "$cookie" ]; then
        (umask 077 && od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >"$cookie.new")
        mv "$cookie.new" "$cookie"
    fi
fi
if [ "$(id -u)" = 0 ] && id rabbitmq >/dev/null 2>&1; then
    chown rabbitmq "$filled"
    [ -n "${FILLED:-}" ] || chown rabbitmq "$cookie"
fi
exec "$@"

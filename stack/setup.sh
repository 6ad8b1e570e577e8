#!/bin/sh
# Installs what the project needs and this machine lacks: the virtual environment in .venv from the hashed lock, what
# Debian's own python3 lacks for making one, RabbitMQ, and, asked for by their names, Prometheus, faketime, node,
# Debian's Postgres (with TLS, which the wheel's has not), Chromium, curl, debootstrap, and atheris, the fuzzer, where it
# has a wheel. Says what it does, does nothing twice, and starts nothing.
#
# usage: setup.sh [prometheus] [faketime] [node] [postgresql] [chromium] [curl] [debootstrap] [kubectl] [atheris]
# PYTHON=... chooses the interpreter. Needs a POSIX shell; Debian packages only where something is missing.
set -eu
cd "$(dirname "$0")/.."

LOCK=requirements-dev.lock
FUZZ_LOCK=requirements-fuzz.lock
STAMP=.venv/installed.lock
RABBITMQ=/usr/lib/rabbitmq/bin/rabbitmq-server
POLICY=/usr/sbin/policy-rc.d
POLICY_MARK="written by Duebell's set-up"

say() { printf '%s\n' "setup: $*" >&2; }

fail() {
    say "$*"
    exit 1
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "installing Debian packages needs root or sudo. Run this once as root: apt-get install $PACKAGES"
    fi
}

# Debian starts a service as soon as it is installed, on the standard ports. Duebell starts its own, so it must not: a
# policy script, Debian's own way to say so, is put in place for the time of the install.
forbid_starting_services() {
    if [ -e "$POLICY" ] && ! grep -q "$POLICY_MARK" "$POLICY"; then
        return # the machine has a policy of its own
    fi
    trap allow_starting_services EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    # Without effect once we are gone, should we be killed before we can remove it.
    printf '#!/bin/sh\n# %s\n[ -d /proc/%s ] && exit 101\nexit 0\n' "$POLICY_MARK" "$$" |
        as_root sh -c "cat > $POLICY && chmod 755 $POLICY"
}

allow_starting_services() {
    if [ -e "$POLICY" ] && grep -q "$POLICY_MARK" "$POLICY"; then
        as_root rm -f "$POLICY"
    fi
}

install_packages() {
    PACKAGES=$*
    command -v apt-get >/dev/null || fail "please install $PACKAGES (there is no apt-get here, so I cannot)"
    as_root true || fail "sudo refused. Run this once as root: apt-get install $PACKAGES"
    say "installing $PACKAGES with apt-get; this takes a minute the first time …"
    forbid_starting_services
    # An index that cannot be refreshed may still be good enough for the install, which then has the last word.
    as_root apt-get -q -o DPkg::Lock::Timeout=300 update >"$APT_LOG" 2>&1 || say "apt-get update complains; going on"
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 \
        install --no-install-recommends $PACKAGES >>"$APT_LOG" 2>&1 || {
        tail -n 20 "$APT_LOG" >&2
        fail "apt-get could not install $PACKAGES; the end of $APT_LOG is above"
    }
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        is_new_enough "$PYTHON" || fail "PYTHON=$PYTHON is not a Python of version 3.11 or later"
        return
    fi
    for PYTHON in python3.11 python3 python3.12 python3.13 python3.14; do
        if is_new_enough "$PYTHON"; then
            return
        fi
    done
    fail "no Python of version 3.11 or later found; install one, or name it: make setup PYTHON=/path/to/python"
}

mkdir -p .stack
APT_LOG=.stack/apt.log

# Two commands started at once must not both install.
if command -v flock >/dev/null; then
    exec 9>.stack/setup.lock
    flock 9
fi

MISSING=
ENVIRONMENT=there
if ! .venv/bin/python -c 'import pip' 2>/dev/null; then
    ENVIRONMENT=missing
    find_python
    if ! "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; then
        MISSING=$("$PYTHON" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    fi
fi
if ! [ -x "$RABBITMQ" ]; then
    MISSING="${MISSING:+$MISSING }rabbitmq-server"
fi
for EXTRA in "$@"; do
    case $EXTRA in
    prometheus) COMMANDS="prometheus promtool" DEBIAN="prometheus" ;;
    faketime) COMMANDS="faketime" DEBIAN="faketime" ;;
    node) COMMANDS="node npm" DEBIAN="nodejs npm" ;;
    postgresql) COMMANDS="pg_createcluster" DEBIAN="postgresql" ;;
    chromium) COMMANDS="chromium" DEBIAN="chromium" ;;
    curl) COMMANDS="curl" DEBIAN="curl" ;;
    debootstrap) COMMANDS="debootstrap" DEBIAN="debootstrap" ;;
    atheris | kubectl) continue ;; # below: a wheel, and a program of another release of Debian
    *) fail "there is no extra called $EXTRA" ;;
    esac
    for COMMAND in $COMMANDS; do
        if ! command -v "$COMMAND" >/dev/null; then
            MISSING="${MISSING:+$MISSING }$DEBIAN"
            break
        fi
    done
done

if [ -n "$MISSING" ]; then
    # shellcheck disable=SC2086
    install_packages $MISSING
fi
# What we have brought, it is for us to see that it does not start at the next boot either.
case $MISSING in
*rabbitmq-server*)
    as_root systemctl disable rabbitmq-server.service epmd.service epmd.socket >/dev/null 2>&1 || :
    [ -x "$RABBITMQ" ] || fail "rabbitmq-server is installed, but $RABBITMQ is not there"
    ;;
esac
case $MISSING in
*prometheus*) as_root systemctl disable prometheus.service >/dev/null 2>&1 || : ;;
esac
case $MISSING in
*postgresql*) as_root systemctl disable postgresql.service >/dev/null 2>&1 || : ;;
esac
if [ "$ENVIRONMENT" = missing ]; then
    say "creating the virtual environment in .venv with $("$PYTHON" --version) …"
    "$PYTHON" -m venv --clear .venv
fi
if ! cmp -s "$LOCK" "$STAMP"; then
    say "installing the locked requirements into .venv; this takes a minute the first time …"
    .venv/bin/python -m pip install -qq --disable-pip-version-check --require-hashes --requirement "$LOCK" ||
        fail "pip could not install the requirements; what it says is above"
    cp "$LOCK" "$STAMP"
fi
case " $* " in
*" atheris "*)
    if ! .venv/bin/python -c 'import atheris' 2>/dev/null; then
        say "installing atheris, the fuzzer …"
        .venv/bin/python -m pip install -qq --disable-pip-version-check --require-hashes --only-binary :all: \
            --requirement "$FUZZ_LOCK" || \
            say "pip could not install atheris, as it says above (some machines have no wheel): fuzzing is not possible here"
    fi
    ;;
esac
case " $* " in
*" kubectl "*) sh stack/kubectl.sh || say "kubectl could not be fetched: what deploy/kubernetes says cannot be checked here" ;;
esac

#!/bin/sh
# Prints the path of a PgBouncer in this Debian, of its own release, or of another one: that one is unpacked beside its
# own libraries, under /opt, and nothing of it is installed.
#
# usage: pgbouncer.sh [RELEASE MIRROR]
set -eu
if [ $# -eq 0 ]; then
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod 755 /usr/sbin/policy-rc.d
    DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends pgbouncer >&2
    rm /usr/sbin/policy-rc.d
    echo /usr/sbin/pgbouncer
    exit
fi
release=$1 mirror=$2 at=/opt/$1
mkdir -p "$at/lists/partial" "$at/debs/partial" "$at/etc"
echo "deb $mirror $release main" >"$at/etc/sources.list"
: >"$at/etc/status"
set -- -q -y -o "Dir::Etc::SourceList=$at/etc/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o "Dir::State::Lists=$at/lists" -o "Dir::State::status=$at/etc/status" -o "Dir::Cache::archives=$at/debs" \
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
apt-get "$@" update >&2
# As no package counts as installed here, these are all that PgBouncer needs, the C library included.
apt-get "$@" install --download-only --no-install-recommends pgbouncer >&2
for package in "$at"/debs/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$at" --exclude ./dev --keep-directory-symlink
done
libraries=$(find "$at" -name '*.so*' -printf '%h\n' | sort -u | paste -s -d :)
loader=$(find "$at" -name 'ld-linux*.so.*' | head -n 1)
printf '#!/bin/sh\nexec %s --library-path %s %s/usr/sbin/pgbouncer "$@"\n' "$loader" "$libraries" "$at" >"$at/pgbouncer"
chmod 755 "$at/pgbouncer"
echo "$at/pgbouncer"

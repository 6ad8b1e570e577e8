#!/bin/sh
# Runs a command in a Debian that is a copy-on-write layer over a base directory. Started by tools/platforms/system.py
# in namespaces of its own: with the last process of them, all mounts are gone, however it ended.
#
# usage: enter.sh BASE LAYER CACHE command …
set -eu
base=$1 layer=$2 cache=$3
shift 3
root=$layer/root
packages=$cache/apt/$(basename "$base")
mkdir -p "$layer/changes" "$layer/work" "$root" "$packages/partial" "$cache/pip"
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$base,upperdir=$layer/changes,workdir=$layer/work" "$root"
export PIP_CACHE_DIR=/var/cache/pip
mkdir -p "$root$PIP_CACHE_DIR"
mount --bind "$packages" "$root/var/cache/apt/archives"
mount --bind "$cache/pip" "$root$PIP_CACHE_DIR"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount --rbind /sys "$root/sys"
mount -t proc proc "$root/proc"
# The network of this machine: its names, and the authorities that it trusts.
for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
    cp --dereference "$file" "$root$file"
done
# A mirror may be a stored copy.
echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/90duebell"
# The layer goes with the run: no file of a package has to reach the disk.
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/90duebell"
# Not chroot: in one, the kernel lets no process make a user namespace, and Postgres runs in one.
cd "$root"
mkdir -p .machine
pivot_root . .machine
umount --lazy /.machine
cd /duebell
exec "$@"

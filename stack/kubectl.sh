#!/bin/sh
# Puts a kubectl into .stack/kubectl, unless the machine has one that can build the overlays of deploy/kubernetes. That of
# Debian 12 is too old; it runs that of Debian 13, which is unpacked here and not installed.
set -eu
cd "$(dirname "$0")/.."

DIRECTORY=$PWD/.stack/kubectl
OLDEST=27 # the first 1.x whose kustomize knows all that the overlays use

say() { printf '%s\n' "setup: $*" >&2; }

[ -x "$DIRECTORY/kubectl" ] && exit 0
if command -v kubectl >/dev/null; then
    MINOR=$(kubectl version --client --output=json 2>/dev/null | sed -n 's/.*"minor": "\([0-9]*\).*/\1/p')
    [ "${MINOR:-0}" -ge "$OLDEST" ] && exit 0
fi

say "fetching kubectl, which checks deploy/kubernetes …"
APT=$DIRECTORY/apt
mkdir -p "$APT/sources" "$APT/lists/partial" "$APT/archives/partial"
MIRROR=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
printf 'Types: deb\nURIs: %s\nSuites: trixie\nComponents: main\nSigned-By: %s\n' \
    "$MIRROR" /usr/share/keyrings/debian-archive-keyring.gpg >"$APT/sources/trixie.sources"
apt() {
    apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$APT/sources" -o Dir::State::Lists="$APT/lists" \
        -o Dir::State::status=/dev/null -o Dir::Cache="$APT" -o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none "$@"
}
apt update >/dev/null
(cd "$APT" && apt download kubectl >/dev/null)
dpkg-deb --extract "$APT"/kubectl_*.deb "$APT/unpacked"
mv "$APT/unpacked/usr/bin/kubectl" "$DIRECTORY/kubectl"
rm -r "$APT"

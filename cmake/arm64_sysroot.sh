#!/usr/bin/env bash
# Puts the libraries that kzero and its tests need, built for AArch64, into .deps/arm64, from the same release of Debian as this
# system's. They are unpacked, not installed, so the system stays as it is. Called by debian.sh; needs no root, but a network.
set -euo pipefail

deps=$(cd "$(dirname "$0")/.." && pwd)/.deps
root=$deps/arm64
packages=(libc6-dev libcli11-dev libdnnl-dev libfmt-dev libgomp1 libgtest-dev libhdf5-mpich-dev libicu-dev libmpich-dev
  libopenblas-openmp-dev libstdc++-12-dev libtomlplusplus-dev libxxhash-dev nlohmann-json3-dev)

# Made once for a recipe: the stamp is this script and the release.
recipe=$({ cat "$0"; grep VERSION_CODENAME /etc/os-release; } | sha256sum)
if [[ -f $root/recipe && $(<"$root/recipe") == "$recipe" ]]; then
  exit 0
fi
echo "arm64_sysroot.sh: unpacking libraries for AArch64 into $root"

# apt with a state of its own, in which nothing is installed
apt=$(mktemp -d)
trap 'rm -rf "$apt"' EXIT
mkdir -p "$apt/lists/partial" "$apt/archives/partial"
touch "$apt/status"
apt_get() {
  apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User="$(id -un)" \
    -o Dir::State="$apt" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt" -o Acquire::Languages=none "$@"
}
apt_get update
apt_get --yes --no-install-recommends --download-only install "${packages[@]}"

rm -rf "$root.new"
mkdir -p "$root.new"
for package in "$apt"/archives/*.deb; do
  case ${package##*/} in
    lib* | linux-libc-dev* | nlohmann-json3-dev* | zlib1g*) dpkg-deb --extract "$package" "$root.new" ;;
  esac
done
rm -rf "$root.new"/usr/share/{doc,man,locale}

# Links to /lib would lead out of the folder.
find "$root.new" -type l -lname '/*' -printf '%P\n' | while read -r link; do
  ln -sfr "$root.new$(readlink "$root.new/$link")" "$root.new/$link"
done
# An installation would have chosen this BLAS by links.
ln -s openblas-openmp/libopenblas.so{,.0} "$root.new/usr/lib/aarch64-linux-gnu/"

rm -rf "$root"
mv "$root.new" "$root"
echo "$recipe" >"$root/recipe"

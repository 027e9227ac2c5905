#!/usr/bin/env bash
# Installs oneDNN 3.2 into .deps/onednn, from the last packages on PyPI whose threads are OpenMP's. Called by debian.sh; needs no
# root, but Python with venv and a network.
set -euo pipefail

deps=$(cd "$(dirname "$0")/.." && pwd)/.deps
prefix=$deps/onednn
version=2023.2.0
[[ ! -f $prefix/.$version ]] || exit 0

packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT
[[ -x $deps/venv/bin/pip ]] || python3 -m venv "$deps/venv"
"$deps/venv/bin/pip" download -q --no-deps --dest "$packages" \
  onednn-cpu-gomp==$version onednn-devel-cpu-gomp==$version
rm -rf "$prefix"
mkdir -p "$prefix"
for wheel in "$packages"/*.whl; do
  python3 -m zipfile -e "$wheel" "$packages/unpacked"
done
for data in "$packages"/unpacked/*.data/data; do
  cp -r "$data/." "$prefix/"
done
# A package has no links, but three copies of the library.
find "$prefix/lib" -maxdepth 1 -name 'libdnnl.so*' ! -name 'libdnnl.so.3' -delete
ln -s libdnnl.so.3 "$prefix/lib/libdnnl.so"
touch "$prefix/.$version"

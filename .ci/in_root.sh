#!/usr/bin/env bash
# Runs a command in a clone of this commit within a bare root of another Debian release. The root is removed afterwards. It is a
# copy of build/roots/SUITE.base, which debootstrap makes, once a day. Needs root, a network, and the packages debootstrap, git
# and ccache.
#
#   bash .ci/in_root.sh SUITE COMMAND...       for instance: trixie bash input/quickstart.sh
#
# The exit code is the command's. It is 77 where the system allows no such root: no mounts, device files or changes of the root
# folder, as in many containers. The reason is then on standard output, after "skipped: ".
#
# Compiled objects are kept for the next time in a ccache folder of the suite, and the sources that cmake/kokkos.sh fetched for
# this checkout are used again.
#
# KZERO_ROOT_FOLDERS: folders that the command may read, as FOLDER=PLACE in the root, one a line.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=${1:?usage: bash .ci/in_root.sh SUITE COMMAND...}
shift
: "${1:?usage: bash .ci/in_root.sh SUITE COMMAND...}"
((EUID == 0)) || { echo "in_root.sh: needs root" >&2; exit 1; }
root=$PWD/build/roots/$suite
cache=$(ccache --get-config cache_dir)-$suite

rm -rf --one-file-system "$root"
trap 'rm -rf --one-file-system "$root"' EXIT
mkdir -p "$root"

# Tries in an empty folder what the root needs of the system. A later failure is one of the command, or of the archive.
export root
# shellcheck disable=SC2016  # expanded within
if ! refusal=$(unshare --mount bash -euc '
  mknod "$root/null" c 1 3
  : >"$root/null"
  mount --bind "$root" "$root"
  mkdir "$root/proc"
  mount --rbind /proc "$root/proc"
  code=0
  chroot "$root" /nothing || code=$?
  ((code == 127))  # chroot itself worked: there is no such command in the folder' 2>&1); then
  echo "skipped: this system allows no root folder of another release: ${refusal##*$'\n'}"
  exit 77
fi
rm "$root/null"
rmdir "$root/proc"

# shellcheck disable=SC2016  # apt's format
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | grep -m 1 '/debian/*$' || true)
if [[ ! $(find "$root.base" -maxdepth 0 -mtime -1 2>/dev/null) ]]; then
  rm -rf --one-file-system "$root.base" "$root.new"
  debootstrap --variant=minbase "$suite" "$root.new" "${mirror:-http://deb.debian.org/debian}" >"$root.log" 2>&1 ||
    { tail -n 20 "$root.log" >&2; exit 1; }
  touch "$root.new"
  mv "$root.new" "$root.base"
fi
cp -a "$root.base/." "$root"
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"  # the root does not outlive the command

git clone --quiet . "$root/root/kzero"
if [[ -d .deps/source ]]; then
  mkdir "$root/root/kzero/.deps"
  cp -r .deps/source "$root/root/kzero/.deps/"
fi
mkdir -p "$cache" "$root/root/.cache/ccache"
cp -L /etc/hosts /etc/resolv.conf "$root/etc/"
# The certificates that this machine trusts in addition, for pip behind a proxy. They are copied, because the package
# ca-certificates writes to /etc/ssl/certs of the system that it is installed in.
if [[ -d /usr/local/share/ca-certificates ]]; then
  cp -r /usr/local/share/ca-certificates "$root/usr/local/share/"
fi

# The mounts end with the command. Packages that are installed in the root could write through them, so only what a build needs
# is mounted.
export cache HOME=/root LANG=C.UTF-8 folders=${KZERO_ROOT_FOLDERS:-}
unset CCACHE_DIR CCACHE_BASEDIR
# shellcheck disable=SC2016  # expanded within
unshare --mount bash -euc '
  mount --rbind /proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --bind /sys "$root/sys"
  mount -o remount,bind,ro "$root/sys"
  mount --bind "$cache" "$root/root/.cache/ccache"
  while IFS="=" read -r folder place; do
    [[ -n $folder ]] || continue
    mkdir -p "$root$place"
    mount --bind "$folder" "$root$place"
    mount -o remount,bind,ro "$root$place"
  done <<<"$folders"
  exec chroot "$root" /bin/bash -c "cd /root/kzero && exec \"\$@\"" - "$@"' - "$@"

#!/usr/bin/env bash
# Rehearses jobscripts/device/first_hour.sh without a GPU: in a bare Debian 13, as another user, at another path, with a driver
# library whose calls all fail, from the toolkit. The bundle's programs must start there and report that they find no device.
#
#   bash .ci/rehearse_device.sh                     packs build/cuda, quickly (jobscripts/device/bundle.sh --from)
#   bash .ci/rehearse_device.sh ARCHIVE             a bundle that bundle.sh made
#
# Needs root and what .ci/in_root.sh needs; the exit code is 77 where the system allows no such root.
set -euo pipefail
cd "$(dirname "$0")/.."

archive=${1:-build/device/rehearsal.tar.xz}
(($#)) || bash jobscripts/device/bundle.sh --from build/cuda

# Stand-ins for what the other machine has: libraries of NVIDIA's wheels or of a toolkit, and the driver.
given=build/device/given
rm -rf "$given"
mkdir -p "$given"
cp "$archive" "$given/bundle.tar.xz"
cp -L .deps/cuda/lib64/stubs/libcuda.so "$given/libcuda.so.1"
folders=("$PWD/$given=/srv/given" "$(readlink -f .deps/cuda/lib64)=/usr/local/cuda/lib64")
libraries=/srv/given
for name in nccl cudnn; do
  if [[ -d .deps/$name/lib ]]; then
    folders+=("$(readlink -f ".deps/$name/lib")=/srv/$name")
    libraries+=:/srv/$name
  fi
done
KZERO_ROOT_FOLDERS=$(printf '%s\n' "${folders[@]}")
export KZERO_ROOT_FOLDERS libraries

# shellcheck disable=SC2016  # expanded within
bash .ci/in_root.sh trixie bash -euc '
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends python3 >/dev/null
  cp -r /root/kzero /srv/checkout
  useradd --create-home somebody
  chown -R somebody /srv/checkout
  cat >/srv/hour.sh <<end
cd /home/somebody
umask 077
export LD_LIBRARY_PATH=$libraries
time bash /srv/checkout/jobscripts/device/first_hour.sh /srv/given/bundle.tar.xz output
cp output/summary.txt /tmp/summary.txt
end
  su somebody -c "bash -euo pipefail /srv/hour.sh"
  # One line about the device, and no failure.
  grep -ci "no cuda device" /tmp/summary.txt | grep -qx 1
  ! grep FAILED /tmp/summary.txt'

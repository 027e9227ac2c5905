#!/usr/bin/env bash
# Rehearses tests/device/first_hour.sh without a GPU: in a bare Debian 12, as another user, at another path. Its glibc is not newer
# than that of a borrowed machine, so programs that would not start there do not start here.
#
#   bash .ci/rehearse_device.sh                     both of the following, with build/cuda
#   bash .ci/rehearse_device.sh --host              the programs of build/release: all parts, with small models and with MPI in NCCL's
#                                                   place. No part may fail
#   bash .ci/rehearse_device.sh ARCHIVE             a bundle that bundle.sh made. Its programs get a driver library whose calls all
#                                                   fail. They must start and report that they find no device
#
# Needs root and what .ci/in_root.sh needs; the exit code is 77 where the system allows no such root.
set -euo pipefail
cd "$(dirname "$0")/.."

archive=${1:-build/device/rehearsal.tar.xz}
(($#)) || bash tests/device/bundle.sh --from build/cuda

# Stand-ins for what the other machine has: libraries of NVIDIA's wheels or of a toolkit, and the driver.
given=build/device/given
rm -rf "$given"
mkdir -p "$given"
folders=("$PWD/$given=/srv/given")
libraries=/srv/given
if [[ $archive != --host ]]; then
  cp "$archive" "$given/bundle.tar.xz"
  cp -L .deps/cuda/lib64/stubs/libcuda.so "$given/libcuda.so.1"
  folders+=("$(readlink -f .deps/cuda/lib64)=/usr/local/cuda/lib64")
  for name in nccl cudnn; do
    if [[ -d .deps/$name/lib ]]; then
      folders+=("$(readlink -f ".deps/$name/lib")=/srv/$name")
      libraries+=:/srv/$name
    fi
  done
fi
if [[ $archive == --host ]] || ((!$#)); then
  bash tests/device/bundle.sh --host build/release
  mv build/device/rehearsal_host.tar.xz "$given/host.tar.xz"
fi
KZERO_ROOT_FOLDERS=$(printf '%s\n' "${folders[@]}")
export KZERO_ROOT_FOLDERS libraries

# shellcheck disable=SC2016  # expanded within
bash .ci/in_root.sh bookworm bash -euc '
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends python3 >/dev/null
  cp -r /root/kzero /srv/checkout
  useradd --create-home somebody
  chown -R somebody /srv/checkout
  cat >/srv/hour.sh <<end
cd /home/somebody
umask 077
export LD_LIBRARY_PATH=$libraries
time bash /srv/checkout/tests/device/first_hour.sh "\$@"
end
  if [[ -e /srv/given/bundle.tar.xz ]]; then
    su somebody -c "bash -euo pipefail /srv/hour.sh /srv/given/bundle.tar.xz output"
    # One line about the device, and no failure.
    grep -ci "no cuda device" /home/somebody/output/summary.txt | grep -qx 1
    ! grep FAILED /home/somebody/output/summary.txt
  fi
  if [[ -e /srv/given/host.tar.xz ]]; then
    su somebody -c "bash -euo pipefail /srv/hour.sh /srv/given/host.tar.xz parts --rehearse --seconds 2400"
    if grep -E "FAILED|out of time|no time left" /home/somebody/parts/summary.txt; then
      # What the launches that failed printed, and whether the system killed a process for memory.
      tar -C /srv -xzf /home/somebody/parts/logs.tar.gz
      grep -rlE "BAD TERMINATION|process manager error" /srv/logs | while read -r log; do
        printf "\n== %s\n" "$log"
        tail -n 30 "$log"
      done
      head -n 3 /proc/meminfo
      dmesg | grep -iE "killed process|out of memory|oom" | tail -n 5
      exit 1
    fi
  fi'

#!/usr/bin/env bash
# Unpacks Debian's Open MPI, and the HDF5 that was built with it, into .deps/openmpi. Installed, Open MPI would become the machine's
# default mpiexec and mpicxx, also for programs of MPICH. Needs no root. Safe to run again: what is there is left alone.
#
#   bash cmake/openmpi.sh
#   . .deps/openmpi/environment         its variables, with which it works from there
#   cmake --preset release -B build/openmpi -DMPI_CXX_COMPILER="$OPAL_PREFIX/bin/mpicxx.openmpi"
#   cmake --build build/openmpi
#   mpiexec.openmpi -n 2 build/openmpi/kzero train DECK.toml
set -euo pipefail
deps=$(cd "$(dirname "$0")/.." && pwd)/.deps
here=$deps/openmpi
[[ ! -e $here/environment ]] || exit 0

rm -rf "$here"
mkdir -p "$here/packages/partial"
trap 'rm -rf "$here/packages"' EXIT
# With the packages that they need and the system lacks
apt-get install -y -qq --no-install-recommends --reinstall --download-only -o "Dir::Cache::archives=$here/packages" -o Debug::NoLocking=1 \
  libhdf5-openmpi-dev libopenmpi-dev openmpi-bin >/dev/null
for package in "$here"/packages/*.deb; do
  dpkg-deb -x "$package" "$here"
done

libraries=usr/lib/$(dpkg-architecture -q DEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
cat >"$here/environment" <<END
export OPAL_PREFIX=$here/usr OPAL_SYSCONFDIR=$here/etc PMIX_INSTALL_PREFIX=$here/$libraries/pmix2
export LD_LIBRARY_PATH=$here/$libraries:\${LD_LIBRARY_PATH:-} PATH=$here/usr/bin:\$PATH
# What this Open MPI lacks of networks, and of compression, is nothing to worry about.
export PMIX_MCA_pcompress_base_silence_warning=1 OMPI_MCA_mca_base_component_show_load_errors=0
END

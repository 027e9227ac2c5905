#!/usr/bin/env bash
# Builds libraries that clusters often lack, or have in old versions, into .deps/libraries, where CMake looks first. Needs no
# root: CMake, make, a C++ compiler, curl or wget, and a network.
#
#   bash cmake/libraries.sh [cli11] [fmt] [icu] [json] [toml] [xxhash]      without names: all six
#   bash cmake/libraries.sh static [fmt] [hdf5]     static ones into .deps/static, for cmake/package.sh. HDF5 is built for the MPI
#                                                   whose compiler is MPICC, or mpicc.
#
# The sources are Debian 13's. KZERO_ARCHIVE names another mirror of the archive, for instance a site's own; it ends in pool/main.
set -euo pipefail

deps=$(cd "$(dirname "$0")/.." && pwd)/.deps
prefix=$deps/libraries
shared=ON
if [[ ${1-} == static ]]; then
  prefix=$deps/static
  shared=OFF
  shift
  (($#)) || set -- fmt hdf5
fi
archive=${KZERO_ARCHIVE:-https://deb.debian.org/debian/pool/main}

if (($# == 0)); then
  set -- cli11 fmt icu json toml xxhash
fi
for tool in cmake gzip make "${CXX:-c++}" sha256sum tar xz; do
  command -v "$tool" >/dev/null || { echo "libraries.sh: $tool is missing" >&2; exit 1; }
done

download() {  # URL FILE
  if command -v curl >/dev/null; then
    curl --fail --silent --show-error --location --output "$2" "$1"
  else
    wget --quiet --output-document="$2" "$1"
  fi
}

# Unpacks a source into $source. The checksum is that of Debian's index, so any mirror will do.
source=
get() {  # PATH SHA256
  local file=$deps/source/${1##*/}
  mkdir -p "$deps/source"
  if [[ ! -f $file ]]; then
    download "$archive/$1" "$file.partial" || { echo "libraries.sh: $archive/$1 could not be downloaded" >&2; exit 1; }
    mv "$file.partial" "$file"
  fi
  if ! sha256sum --check --status <<<"$2  $file"; then
    echo "libraries.sh: $file is not what was expected (SHA-256 $2); remove it to download it again" >&2
    exit 1
  fi
  source=$deps/source/build-$name
  rm -rf "$source"
  mkdir "$source"
  tar -xf "$file" -C "$source" --strip-components=1
}

with_cmake() {  # OPTION...
  cmake -S "$source" -B "$source/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib \
    -DBUILD_SHARED_LIBS="$shared" -DCMAKE_POSITION_INDEPENDENT_CODE=ON "$@"
  cmake --build "$source/build" --parallel "$(nproc)"
  cmake --install "$source/build"
}

build() {
  case $name in
    cli11)
      get c/cli11/cli11_2.4.1+ds.orig.tar.xz 0b8fbf2398875f15f30a675c7f412123a2aaa38df2863e991de72004fd5f1292
      with_cmake -DCLI11_BUILD_TESTS=OFF -DCLI11_BUILD_EXAMPLES=OFF -DCLI11_BUILD_DOCS=OFF ;;
    fmt)
      get f/fmtlib/fmtlib_10.1.1+ds1.orig.tar.gz 7000f214d2628f04174822f8048c573f1608194408d7931121595a03f1c18a17
      with_cmake -DFMT_TEST=OFF -DFMT_DOC=OFF ;;
    hdf5)
      local compiler
      compiler=$(command -v "${MPICC:-mpicc}") ||
        { echo "libraries.sh: ${MPICC:-mpicc} is missing, the compiler of the MPI that HDF5 is for" >&2; exit 1; }
      get h/hdf5/hdf5_1.14.5+repack.orig.tar.gz 71cdb04c151ef4e8a7f88907adfc4f3b75afd44e96fbd55775e1c9d7c4e7c112
      with_cmake -DHDF5_ENABLE_PARALLEL=ON -DMPI_C_COMPILER="$compiler" -DHDF5_BUILD_CPP_LIB=OFF \
        -DHDF5_BUILD_EXAMPLES=OFF -DHDF5_BUILD_HL_LIB=OFF -DHDF5_BUILD_TOOLS=OFF -DHDF5_ENABLE_SZIP_SUPPORT=OFF \
        -DHDF5_ENABLE_Z_LIB_SUPPORT=OFF -DBUILD_TESTING=OFF ;;
    icu)
      get i/icu/icu_76.1.orig.tar.gz dfacb46bfe4747410472ce3e1144bf28a102feeaa4e3875bac9b4c6cf30f4f3e
      # Its libraries need one another. The path of the program that loads the first is not searched for the others.
      (cd "$source/source" && LDFLAGS="-Wl,-rpath,$prefix/lib ${LDFLAGS-}" \
        ./configure --prefix="$prefix" --libdir="$prefix/lib" --disable-tests --disable-samples --disable-extras)
      make -C "$source/source" --jobs "$(nproc)"
      make -C "$source/source" install ;;
    json)
      get n/nlohmann-json3/nlohmann-json3_3.11.3.orig.tar.gz 0d8ef5af7f9794e3263480193c491549b2ba6cc74bb018906202ada498a79406
      with_cmake -DJSON_BuildTests=OFF ;;
    toml)
      get t/tomlplusplus/tomlplusplus_3.4.0+ds.orig.tar.xz 0ae736e13a49cc8a0aa7799705cf18bd93f5f56624613e6aa554b65fe2d72768
      with_cmake ;;
    xxhash)
      get x/xxhash/xxhash_0.8.3.orig.tar.gz aae608dfe8213dfd05d909a57718ef82f30722c392344583d3f39050c7f29a80
      make -C "$source" install PREFIX="$prefix" LIBDIR="$prefix/lib" ;;
  esac
}

for name in "$@"; do
  case $name in
    fmt) ;;
    hdf5) [[ $shared == OFF ]] || { echo "libraries.sh: hdf5 is for 'static' only" >&2; exit 2; } ;;
    cli11 | icu | json | toml | xxhash)
      [[ $shared == ON ]] || { echo "libraries.sh: only fmt and hdf5 become static, not $name" >&2; exit 2; } ;;
    *) echo "libraries.sh: '$name' is not one of cli11, fmt, icu, json, toml, xxhash" >&2; exit 2 ;;
  esac
done
for name in "$@"; do
  [[ ! -f $prefix/.$name ]] || continue
  echo "libraries.sh: building $name into $prefix"
  log=$deps/build-$name.log
  mkdir -p "$prefix"
  # Bash ignores set -e in a function whose result is tested. The subshell stops at the first failure.
  set +e
  (set -e; build) >"$log" 2>&1
  code=$?
  set -e
  ((code == 0)) || { tail -n 40 "$log" >&2; echo "libraries.sh: $name failed; the whole log is $log" >&2; exit 1; }
  rm -rf "$deps/source/build-$name"
  touch "$prefix/.$name"
done

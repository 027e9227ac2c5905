#!/usr/bin/env bash
# Makes build/package/kzero-VERSION-linux-PROCESSOR.tar.gz: the program for CPUs, its decks, scripts and documents, and the
# libraries that a computing centre may lack. It needs no installation. The centre provides glibc 2.34 or newer and an MPI
# library with MPICH's ABI. Called by the target `package` of CMake.
#
# Runs on Debian 12, after cmake/debian.sh. A program that is linked on a newer system needs that system's glibc; package.py
# then says which symbols do.
set -euo pipefail
cd "$(dirname "$0")/.."

processor=$(uname -m)
libraries=/usr/lib/$processor-linux-gnu
blas=$libraries/openblas-openmp/libopenblas.a
icu=("$libraries/libicuuc.a" "$libraries/libicudata.a")
for file in "$blas" "${icu[@]}" /usr/bin/mpicxx.mpich /usr/bin/patchelf; do
  [[ -e $file ]] || { echo "package.sh: $file is missing: bash cmake/debian.sh tests" >&2; exit 1; }
done

# kzero's own loops are compiled for one processor: x86-64-v3 has AVX2 and FMA, which Intel's have had since 2013 and AMD's since
# 2017. The loader refuses others in one sentence. oneDNN and OpenBLAS choose their instructions when the program starts.
flags='' link='-static-libstdc++ -Wl,--exclude-libs,ALL'
if [[ $processor == x86_64 ]]; then
  flags=-march=x86-64-v3
  link+=' -Wl,-z,x86-64-v3'
fi

export MPICC=mpicc.mpich
bash cmake/kokkos.sh static
bash cmake/libraries.sh static
bash cmake/onednn.sh

# What is linked statically cannot be replaced by the libraries of a module. libstdc++ is, because Debian 12's needs glibc 2.36 for
# one function, which arc4random.c has. -lgcc has those for half precision, which the libgcc_s of GCC 11 lacks.
mkdir -p build/package
gcc -O2 -c cmake/arc4random.c -o build/package/arc4random.o
link+=" $PWD/build/package/arc4random.o"
cmake --preset release -B build/package -DKZERO_TESTS=OFF -DKZERO_BENCHMARKS=OFF -DKZERO_NATIVE=OFF \
  -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_EXE_LINKER_FLAGS="$link" -DCMAKE_CXX_STANDARD_LIBRARIES="${icu[1]} -lgcc" \
  -DCMAKE_PREFIX_PATH="$PWD/.deps/static" -DKokkos_ROOT="$PWD/.deps/kokkos-static" -DOneDNN_ROOT="$PWD/.deps/onednn" \
  -DHDF5_ROOT="$PWD/.deps/static" -DHDF5_USE_STATIC_LIBRARIES=ON -DBLAS_LIBRARIES="$blas" -DICU_UC_LIBRARY_RELEASE="${icu[0]}" \
  -DMPI_CXX_COMPILER=/usr/bin/mpicxx.mpich
cmake --build build/package --target kzero man_page
python3 cmake/package.py build/package

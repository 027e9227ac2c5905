# Toolchain file: builds for AArch64 (64-bit Arm) on Debian for x86-64, after `bash cmake/debian.sh arm`. Programs, tests and
# CMake's own trials run in qemu's emulator. The presets arm and kokkos.sh use it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

get_filename_component(deps ${CMAKE_CURRENT_LIST_DIR}/../.deps ABSOLUTE)
set(CMAKE_SYSROOT ${deps}/arm64)
set(libraries ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH ${CMAKE_SYSROOT} ${deps}/kokkos-arm64)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${libraries}/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)

# Libraries that other libraries need: the linker looks for them here alone.
string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -Wl,-rpath-link,${libraries}")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;${CMAKE_SYSROOT})

# The compiler wrappers of MPI and HDF5 in the sysroot are programs for AArch64, which CMake cannot ask. Those of this system have
# folders of x86-64.
set(MPI_SKIP_COMPILER_WRAPPER ON)
set(MPI_CXX_SKIP_MPICXX ON)
set(MPI_CXX_HEADER_DIR ${CMAKE_SYSROOT}/usr/include/aarch64-linux-gnu/mpich)
set(MPI_CXX_ADDITIONAL_INCLUDE_DIRS ${MPI_CXX_HEADER_DIR})
set(MPI_CXX_LIB_NAMES mpich)
set(MPI_mpich_LIBRARY ${libraries}/libmpich.so)
set(HDF5_ROOT ${libraries}/hdf5/mpich)

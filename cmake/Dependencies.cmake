# Everything kzero links against. cmake/debian.sh installs it on Debian and Ubuntu.

list(PREPEND CMAKE_PREFIX_PATH ${PROJECT_SOURCE_DIR}/.deps/libraries)  # of cmake/libraries.sh

if(CMAKE_VERSION VERSION_LESS 3.26)  # its FindCUDAToolkit insists on a library that CUDA 13 no longer has
  add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
endif()
find_package(Kokkos 4.7 CONFIG QUIET PATHS ${PROJECT_SOURCE_DIR}/.deps/kokkos-host)
if(NOT Kokkos_FOUND)
  if(Kokkos_CONSIDERED_VERSIONS)
    set(found ", found ${Kokkos_CONSIDERED_VERSIONS}")
  endif()
  message(FATAL_ERROR "Kokkos 4.7 or newer is missing${found}. On Debian `bash cmake/debian.sh` builds it into .deps/, where "
                      "this looks; elsewhere set Kokkos_ROOT to an installed one.")
endif()
if(KZERO_DEVICE AND NOT Kokkos_ENABLE_${KZERO_DEVICE})
  list(JOIN Kokkos_DEVICES ", " devices)
  if(KZERO_DEVICE STREQUAL "CUDA")
    set(place "`bash cmake/debian.sh cuda` builds one for CUDA into .deps/kokkos-cuda; elsewhere set Kokkos_ROOT to one.")
  else()
    set(place "Set Kokkos_ROOT to one for ${KZERO_DEVICE}.")
  endif()
  message(FATAL_ERROR "KZERO_DEVICE is ${KZERO_DEVICE}, but the Kokkos in ${Kokkos_DIR} was built for ${devices}. ${place}")
endif()
if(Kokkos_ENABLE_CUDA)
  include(Cuda)
elseif(Kokkos_ENABLE_HIP)
  include(Hip)
endif()
include(MpiAndHdf5)

# Its headers without the options that its package sets for a shared library: src/deck/toml.hpp sets them.
find_package(tomlplusplus 3.3 REQUIRED CONFIG)
add_library(kzero_toml INTERFACE)
target_include_directories(kzero_toml SYSTEM INTERFACE
                           $<TARGET_PROPERTY:tomlplusplus::tomlplusplus,INTERFACE_INCLUDE_DIRECTORIES>)

find_package(CLI11 2.1 REQUIRED CONFIG)
find_package(fmt 9 REQUIRED CONFIG)
find_package(nlohmann_json 3.11 REQUIRED CONFIG)
find_package(ICU 72 REQUIRED COMPONENTS uc)
# Matrix products on hosts. Devices have libraries of their own, or kzero's kernels.
if(Kokkos_ENABLE_CUDA OR Kokkos_ENABLE_HIP OR Kokkos_ENABLE_SYCL OR KZERO_STAND_IN_DEVICE)
  set(KZERO_FOR_DEVICES ON)
else()
  set(KZERO_FOR_DEVICES OFF)
  find_package(OneDNN REQUIRED)
  find_package(BLAS REQUIRED)
endif()
find_package(PkgConfig REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)

if(KZERO_TESTS)
  find_package(GTest CONFIG QUIET)
  if(NOT GTest_FOUND)
    message(FATAL_ERROR "GoogleTest is missing, which the tests need. On Debian `bash cmake/debian.sh tests` installs it; "
                        "-DKZERO_TESTS=OFF builds without tests.")
  endif()
endif()

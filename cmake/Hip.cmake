# The build for AMD GPUs: included when the Kokkos found has HIP. Kokkos lets the C++ compiler, hipcc or amdclang++, compile
# all sources that link it for its GPU.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "The Kokkos in ${Kokkos_DIR} has HIP, which needs ROCm's compiler, but the C++ compiler is "
                      "${CMAKE_CXX_COMPILER} (${CMAKE_CXX_COMPILER_ID}). Set CMAKE_CXX_COMPILER to hipcc or amdclang++.")
endif()

# ROCm 6.0 is the first whose hipBLASLt has HIP's own data types.
foreach(library IN ITEMS hip hipblaslt rccl)
  find_package(${library} CONFIG QUIET PATHS $ENV{ROCM_PATH} /opt/rocm)
  if(NOT ${library}_FOUND)
    list(APPEND missing ${library})
  endif()
endforeach()
if(missing)
  list(JOIN missing ", " missing)
  message(FATAL_ERROR "Builds for HIP need hip, hipblaslt and rccl of ROCm 6.0 or newer. Not found: ${missing}. Set ROCM_PATH, or "
                      "CMAKE_PREFIX_PATH, to the folder of ROCm.")
endif()

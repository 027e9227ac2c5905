# The device build: included when the Kokkos found has CUDA. Kokkos wants every source that sees its headers compiled by
# nvcc, so those of kzero's are, by CMake's own CUDA language; the host compiler, which takes half the time, does the rest.
if(NOT Kokkos_ENABLE_COMPILE_AS_CMAKE_LANGUAGE)
  message(FATAL_ERROR "The Kokkos in ${Kokkos_DIR} has CUDA but was built for a compiler wrapper. Build it with "
                      "-DKokkos_ENABLE_COMPILE_AS_CMAKE_LANGUAGE=ON (Spack: kokkos +cmake_lang).")
endif()

set(CMAKE_CUDA_ARCHITECTURES ${Kokkos_CUDA_ARCHITECTURES})
# CMake's default is a CUDA runtime of its own in each program and library: Kokkos would use another one than kzero.
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
enable_language(CUDA)
# nvcc gives its own -O to the host compiler after all -Xcompiler, where it would override those. Code for devices is optimized
# without it.
foreach(type IN ITEMS RELEASE RELWITHDEBINFO MINSIZEREL)
  string(REGEX REPLACE "-O([0-3s])" "-Xcompiler=-O\\1" CMAKE_CUDA_FLAGS_${type} "${CMAKE_CUDA_FLAGS_${type}}")
endforeach()
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has C++20
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
endif()
find_package(CUDAToolkit 12 REQUIRED)
find_package(NCCL REQUIRED)

# cuDNN's attention: where it is found, or an error if it was asked for.
if(KZERO_CUDNN)
  find_package(cuDNN 9.11)
  if(NOT cuDNN_FOUND AND NOT KZERO_CUDNN STREQUAL "AUTO")
    message(FATAL_ERROR "KZERO_CUDNN is ${KZERO_CUDNN}, but cuDNN 9.11 or newer, or its frontend's headers, were not found. Set "
                        "cuDNN_ROOT and cuDNN_FRONTEND_INCLUDE_DIR, or KZERO_CUDNN=OFF.")
  endif()
endif()

# fmt 9 takes nvcc for a compiler without constexpr.
add_compile_definitions(FMT_USE_CONSTEXPR=1)

# Host flags reach g++ through nvcc, less the warnings about code that nvcc itself writes.
function(kzero_compile_with_nvcc target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE path)
    kzero_sees_kokkos(sees ${path})
    if(sees)
      set_source_files_properties(${source} PROPERTIES LANGUAGE CUDA)
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)

  set(host ${KZERO_WARNINGS} ${KZERO_ARITHMETIC} ${KZERO_COMPILER_MEMORY})
  list(REMOVE_ITEM host -Wpedantic)
  list(APPEND host -Wno-unused-local-typedefs)
  list(JOIN host "," host)
  # 20208: fmt's constexpr functions of long double, which no device code calls
  set(flags --diag-suppress=20208 --expt-relaxed-constexpr -Xcompiler=${host}
            "SHELL:-include ${PROJECT_SOURCE_DIR}/cmake/kokkos47_cuda13.hpp")
  if(KZERO_WERROR)
    list(APPEND flags --Werror=all-warnings)
  endif()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${flags}>")
endfunction()

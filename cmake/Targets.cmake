# One static library per folder of src/, so that the link graph states the levels of docs/architecture.md.
#
#   kzero_folder(NAME [USES folder...] [LIBRARIES target...] [EXCLUDE source...] [ALONE source...]
#                [ONCE])
#
# ALONE: not compiled together with others: tests link a source of their own in its place, or the source changes with every commit.
# ONCE: runs once a step or less, and is compiled in half the time with few optimizations.

set(KZERO_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                   -Wno-unknown-pragmas)
if(KZERO_WERROR)
  list(APPEND KZERO_WARNINGS -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  list(APPEND KZERO_WARNINGS -Wno-pass-failed)  # a loop that is to be vectorized is not in builds with few optimizations
endif()
if(KZERO_UNITY GREATER 1 AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND KZERO_WARNINGS -Wno-subobject-linkage)  # it takes an included source for a header
endif()

# Arithmetic: fused multiply-add allowed everywhere alike, no reassociation, so that one binary gives one answer.
set(KZERO_ARITHMETIC -ffp-contract=fast -fno-math-errno -fno-trapping-math)
include(CheckCXXCompilerFlag)
# For AMD's processors gcc leaves multiply and add apart in chains of sums, or not: that depends on the shape of the loop. Then
# a row among others would not have the bits that it has alone.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  check_cxx_compiler_flag(--param=avoid-fma-max-bits=0 KZERO_HAS_FMA_CHAINS)
  if(KZERO_HAS_FMA_CHAINS)
    list(APPEND KZERO_ARITHMETIC --param=avoid-fma-max-bits=0)
  endif()
endif()
if(KZERO_NATIVE)
  list(APPEND KZERO_ARITHMETIC -march=native)
  # gcc uses half of the vectors of Intel's servers from Skylake to Sapphire Rapids, for the sake of clock rates. The matrix
  # products between these kernels set those rates anyway.
  check_cxx_compiler_flag(-mprefer-vector-width=512 KZERO_HAS_VECTOR_WIDTH)
  if(KZERO_HAS_VECTOR_WIDTH)
    list(APPEND KZERO_ARITHMETIC -mprefer-vector-width=512)
  endif()
endif()

# gcc searches its memory for what it can free, from 128 MiB on. That takes an eighth of its time. If it begins at 1 GiB, the
# largest source needs 1.5 GiB instead of 1.1.
set(KZERO_COMPILER_MEMORY)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(KZERO_COMPILER_MEMORY --param=ggc-min-heapsize=1048576)
endif()

function(kzero_compile_options target)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:${KZERO_WARNINGS};${KZERO_ARITHMETIC};${KZERO_COMPILER_MEMORY}>")
  if(Kokkos_ENABLE_CUDA)
    kzero_compile_with_nvcc(${target})
  endif()
endfunction()

# The last -O counts. At -O1 gcc 12 takes std::optional for uninitialized.
function(kzero_compile_quickly target)
  target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>
                                           $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CUDA>>:-Xcompiler=-O1>
                                           $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>
                                           $<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Xcompiler=-Wno-maybe-uninitialized>)
endfunction()

function(kzero_folder name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "ONCE" "" "USES;LIBRARIES;EXCLUDE;ALONE")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
  list(TRANSFORM ARG_EXCLUDE PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/main.cpp ${ARG_EXCLUDE})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS *.hpp)
  list(REMOVE_ITEM headers ${ARG_EXCLUDE})
  list(TRANSFORM ARG_USES PREPEND kzero_)
  if(sources)
    list(TRANSFORM ARG_ALONE PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    list(REMOVE_ITEM sources ${ARG_ALONE})
    kzero_unite(united kzero_${name} ${sources})
    add_library(kzero_${name} STATIC ${united} ${ARG_ALONE})
    target_sources(kzero_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src
                                        FILES ${headers})
    target_link_libraries(kzero_${name} PUBLIC ${ARG_USES} ${ARG_LIBRARIES})
    kzero_compile_options(kzero_${name})
    if(ARG_ONCE)
      kzero_compile_quickly(kzero_${name})
    endif()
  else()
    add_library(kzero_${name} INTERFACE)
    target_sources(kzero_${name} INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src
                                           FILES ${headers})
    target_link_libraries(kzero_${name} INTERFACE ${ARG_USES} ${ARG_LIBRARIES})
  endif()
endfunction()

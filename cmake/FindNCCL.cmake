# Finds NCCL next to the CUDA toolkit, in .deps/nccl or under NCCL_ROOT; target NCCL::nccl.
set(places ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_TARGET_DIR} ${PROJECT_SOURCE_DIR}/.deps/nccl)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${places} PATH_SUFFIXES include)
find_library(NCCL_LIBRARY nccl HINTS ${places} PATH_SUFFIXES lib64 lib)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR)
if(NCCL_FOUND AND NOT TARGET NCCL::nccl)
  add_library(NCCL::nccl UNKNOWN IMPORTED)
  set_target_properties(NCCL::nccl PROPERTIES IMPORTED_LOCATION ${NCCL_LIBRARY}
                                              INTERFACE_INCLUDE_DIRECTORIES ${NCCL_INCLUDE_DIR})
endif()
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)

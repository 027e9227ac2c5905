# Finds cuDNN and the headers of its frontend next to the CUDA toolkit, in .deps/cudnn or under cuDNN_ROOT; target
# cuDNN::frontend. cuDNN 9.11 repairs backward. With 9.25, frontend 1.27 adds gradients in a fixed order in little scratch on
# Hopper. The frontend calls NVRTC, and so do those of cuDNN's engines that are compiled when a plan is made.
set(places ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_TARGET_DIR} ${PROJECT_SOURCE_DIR}/.deps/cudnn)
find_path(cuDNN_INCLUDE_DIR cudnn_version.h HINTS ${places} PATH_SUFFIXES include)
find_path(cuDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h HINTS ${places} ${PROJECT_SOURCE_DIR}/.deps/cudnn-frontend PATH_SUFFIXES include)
find_library(cuDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${places} PATH_SUFFIXES lib64 lib)

# kzero_read_version(RESULT FILE PREFIX): MAJOR.MINOR.PATCH of the macros of a header, each with a number.
function(kzero_read_version result file prefix)
  set(numbers)
  if(EXISTS ${file})
    foreach(part IN ITEMS MAJOR MINOR PATCH)
      file(STRINGS ${file} line REGEX "^#define +${prefix}${part}(LEVEL|_VERSION)? +[0-9]+")
      string(REGEX MATCH "[0-9]+ *$" number "${line}")
      list(APPEND numbers "${number}")
    endforeach()
  endif()
  list(JOIN numbers "." version)
  set(${result} "${version}" PARENT_SCOPE)
endfunction()
kzero_read_version(cuDNN_VERSION "${cuDNN_INCLUDE_DIR}/cudnn_version.h" CUDNN_)
kzero_read_version(cuDNN_FRONTEND_VERSION "${cuDNN_FRONTEND_INCLUDE_DIR}/cudnn_frontend_version.h" CUDNN_FRONTEND_)
if(cuDNN_FRONTEND_VERSION AND cuDNN_FRONTEND_VERSION VERSION_LESS 1.27)
  message(STATUS "cuDNN's frontend in ${cuDNN_FRONTEND_INCLUDE_DIR} is ${cuDNN_FRONTEND_VERSION}; 1.27 or newer is needed")
  unset(cuDNN_FRONTEND_INCLUDE_DIR CACHE)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(cuDNN REQUIRED_VARS cuDNN_LIBRARY cuDNN_INCLUDE_DIR cuDNN_FRONTEND_INCLUDE_DIR
                                  VERSION_VAR cuDNN_VERSION)
if(cuDNN_FOUND AND NOT TARGET cuDNN::frontend)
  add_library(cuDNN::frontend UNKNOWN IMPORTED)
  set_target_properties(cuDNN::frontend PROPERTIES
    IMPORTED_LOCATION ${cuDNN_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES "${cuDNN_FRONTEND_INCLUDE_DIR};${cuDNN_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS CUDNN_FRONTEND_SKIP_JSON_LIB
    INTERFACE_LINK_LIBRARIES "CUDA::cudart;CUDA::nvrtc;${CMAKE_DL_LIBS}")
endif()
mark_as_advanced(cuDNN_INCLUDE_DIR cuDNN_FRONTEND_INCLUDE_DIR cuDNN_LIBRARY)

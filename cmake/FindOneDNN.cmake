# Finds oneDNN by header and library, target OneDNN::dnnl, in OneDNN_ROOT alone where that is set. Its own package file asks
# for OpenCL on Debian, which a host build has no use for.
set(places)
if(OneDNN_ROOT)
  set(places PATHS ${OneDNN_ROOT} NO_DEFAULT_PATH)
endif()
if(NOT "${OneDNN_ROOT}" STREQUAL "${OneDNN_LAST_ROOT}")  # or what was found before would stay
  unset(OneDNN_INCLUDE_DIR CACHE)
  unset(OneDNN_LIBRARY CACHE)
endif()
set(OneDNN_LAST_ROOT "${OneDNN_ROOT}" CACHE INTERNAL "OneDNN_ROOT of the last configuration")
find_path(OneDNN_INCLUDE_DIR dnnl.hpp ${places} PATH_SUFFIXES include)
find_library(OneDNN_LIBRARY dnnl ${places} PATH_SUFFIXES lib lib64)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN REQUIRED_VARS OneDNN_LIBRARY OneDNN_INCLUDE_DIR)
if(OneDNN_FOUND AND NOT TARGET OneDNN::dnnl)
  add_library(OneDNN::dnnl UNKNOWN IMPORTED)
  set_target_properties(OneDNN::dnnl PROPERTIES IMPORTED_LOCATION ${OneDNN_LIBRARY}
                                                INTERFACE_INCLUDE_DIRECTORIES ${OneDNN_INCLUDE_DIR})
endif()
mark_as_advanced(OneDNN_INCLUDE_DIR OneDNN_LIBRARY)

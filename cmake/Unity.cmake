# Sources compiled several at a time: most of a source's time goes to the headers of Kokkos and of the standard library,
# so a build from nothing takes a third of the time. CMake's own UNITY_BUILD leaves CUDA out before version 3.31.
#
# Names in unnamed namespaces have to differ within a folder.

# The sources of TARGET, absolute, that are to be compiled: SOURCES, or files that include KZERO_UNITY of them each.
# Those that nvcc has to compile stay apart from those for the host compiler, which takes half the time.
function(kzero_unite result target)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "" "SOURCES")
  set(${result} ${ARG_SOURCES} PARENT_SCOPE)
  if(KZERO_UNITY LESS 2)
    return()
  endif()
  set(host)
  set(device)
  foreach(source IN LISTS ARG_SOURCES)
    set(sees FALSE)
    if(Kokkos_ENABLE_CUDA)
      kzero_sees_kokkos(sees ${source})
    endif()
    if(sees)
      list(APPEND device ${source})
    else()
      list(APPEND host ${source})
    endif()
  endforeach()
  kzero_united_files(files ${target}_host ${host})
  kzero_united_files(device_files ${target}_device ${device})
  set(${result} ${files} ${device_files} PARENT_SCOPE)
endfunction()

function(kzero_united_files result name)
  set(files)
  set(sources ${ARGN})
  while(sources)
    list(SUBLIST sources 0 ${KZERO_UNITY} some)
    list(REMOVE_ITEM sources ${some})
    list(LENGTH files number)
    # A compiler cache knows them again in another folder, as the paths are relative to the include path.
    list(TRANSFORM some REPLACE "^${PROJECT_SOURCE_DIR}/(src|tests)/(.+)$" "#include \"\\2\"  // NOLINT(bugprone-suspicious-include)")
    list(JOIN some "\n" content)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${name}_${number}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${content}\n" @ONLY)
    list(APPEND files ${file})
  endwhile()
  set(${result} ${files} PARENT_SCOPE)
endfunction()

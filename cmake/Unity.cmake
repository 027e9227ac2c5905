# Sources compiled several at a time: most of a source's time goes to the headers of Kokkos and of the standard library,
# so a build from nothing takes a third of the time. CMake's own UNITY_BUILD leaves CUDA out before version 3.31.
#
# Names in unnamed namespaces have to differ within a folder.

# Whether a file of kzero's includes a header of Kokkos, itself or through others of kzero's. Where that decides about its
# compiler, CMake runs again when one of them changes.
function(kzero_sees_kokkos result file)
  get_property(sees GLOBAL PROPERTY "kzero_sees_kokkos ${file}")
  if("${sees}" STREQUAL "")
    set_property(GLOBAL PROPERTY "kzero_sees_kokkos ${file}" FALSE)  # for the time of looking, should it include itself
    set(sees FALSE)
    if(Kokkos_ENABLE_CUDA)
      set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    endif()
    file(STRINGS ${file} includes REGEX "^ *# *include ")
    foreach(include IN LISTS includes)
      if(include MATCHES "<Kokkos_")
        set(sees TRUE)
      elseif(include MATCHES "\"(.+)\"")
        cmake_path(GET file PARENT_PATH beside)
        foreach(folder IN ITEMS ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests ${beside})
          if(NOT sees AND EXISTS ${folder}/${CMAKE_MATCH_1})
            kzero_sees_kokkos(sees ${folder}/${CMAKE_MATCH_1})
          endif()
        endforeach()
      endif()
      if(sees)
        break()
      endif()
    endforeach()
    set_property(GLOBAL PROPERTY "kzero_sees_kokkos ${file}" ${sees})
  endif()
  set(${result} ${sees} PARENT_SCOPE)
endfunction()

# The sources of TARGET, absolute, that are to be compiled: the sources that follow, or files that include
# KZERO_UNITY of them each.
# Those that see Kokkos, which nvcc has to compile where there is one, stay apart from those that do not, for which the
# host compiler takes half the time: in every build, so that a compiler cache knows one build's in the next.
# KZERO_DEVICE_OPTIONS: further options for the sources of src/ that see Kokkos, which have all kernels. A preset that optimizes
# these alone in its own way finds the objects of the others in the cache.
function(kzero_unite result target)
  set(${result} ${ARGN} PARENT_SCOPE)
  if(KZERO_UNITY LESS 2)
    return()
  endif()
  set(host)
  set(device)
  foreach(source IN LISTS ARGN)
    kzero_sees_kokkos(sees ${source})
    if(sees)
      list(APPEND device ${source})
    else()
      list(APPEND host ${source})
    endif()
  endforeach()
  kzero_united_files(files ${target}_host ${host})
  kzero_united_files(device_files ${target}_device ${device})
  if(KZERO_DEVICE_OPTIONS AND target MATCHES "^kzero_")
    set_source_files_properties(${device_files} PROPERTIES COMPILE_OPTIONS "${KZERO_DEVICE_OPTIONS}")
  endif()
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

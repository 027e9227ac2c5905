# Files that cmake --install puts under its prefix: bin/kzero, two scripts next to it, share/kzero/, modulefiles for Lmod
# and Environment Modules, completion for bash, zsh and fish. The manual page is made in src/app.
include(GNUInstallDirs)

# The program keeps the paths of the libraries that it was linked with outside the system's own folders (Kokkos, a site's
# MPI and HDF5), so that it runs without LD_LIBRARY_PATH. They are absolute: the prefix may move, those libraries not.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
# CMake leaves out paths below the source tree, where the scripts in cmake/ put libraries.
foreach(library IN ITEMS Kokkos::kokkoscore NCCL::nccl cuDNN::frontend CUDA::cudart OneDNN::dnnl)
  if(TARGET ${library})
    get_target_property(path ${library} LOCATION)
    cmake_path(GET path PARENT_PATH folder)
    cmake_path(IS_PREFIX PROJECT_SOURCE_DIR ${folder} is_below)
    if(is_below)
      list(APPEND CMAKE_INSTALL_RPATH ${folder})
    endif()
  endif()
endforeach()
set(libraries ${PROJECT_SOURCE_DIR}/.deps/libraries/lib)  # several shared ones, of cmake/libraries.sh
if(IS_DIRECTORY ${libraries})
  list(APPEND CMAKE_INSTALL_RPATH ${libraries})
endif()

set(share ${CMAKE_INSTALL_DATADIR}/kzero)
install(DIRECTORY docs input postprocess DESTINATION ${share} PATTERN __pycache__ EXCLUDE PATTERN quickstart.sh EXCLUDE)
install(DIRECTORY jobscripts DESTINATION ${share} USE_SOURCE_PERMISSIONS)
install(FILES README.md CHANGELOG.md CITATION.cff CONTRIBUTING.md SECURITY.md DESTINATION ${share})
install(FILES cmake/modulefile.lua DESTINATION ${CMAKE_INSTALL_DATADIR}/modulefiles/kzero RENAME ${PROJECT_VERSION}.lua)
install(FILES cmake/modulefile.tcl DESTINATION ${CMAKE_INSTALL_DATADIR}/modulefiles/kzero RENAME ${PROJECT_VERSION})
install(FILES cmake/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME kzero)
install(FILES cmake/completion.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _kzero)
install(FILES cmake/completion.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME kzero.fish)

# The scripts in Python that users start need their neighbours, so bin/ gets a starter of each.
file(RELATIVE_PATH from_bin ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_DATADIR}/kzero)
foreach(script IN ITEMS input/prepare.py postprocess/report.py)
  cmake_path(GET script STEM name)
  configure_file(cmake/on_path.sh.in ${PROJECT_BINARY_DIR}/generated/kzero-${name} @ONLY)
  install(PROGRAMS ${PROJECT_BINARY_DIR}/generated/kzero-${name} DESTINATION ${CMAKE_INSTALL_BINDIR})
endforeach()

# One tarball of the program, what is installed with it, and the libraries that a computing centre may lack. It is a build of its
# own, in build/package.
add_custom_target(package COMMAND bash ${PROJECT_SOURCE_DIR}/cmake/package.sh WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} USES_TERMINAL VERBATIM)

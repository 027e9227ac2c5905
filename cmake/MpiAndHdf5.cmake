# MPI and an HDF5 that was built with it.

# Debian has MPI libraries side by side, with an mpicxx, an mpiexec and an HDF5 each: mpicxx.mpich and so on. Where Open MPI is
# installed, too, it is the default. kzero is built with MPICH there, which cmake/debian.sh installs, unless another is named.
find_program(kzero_default_mpicxx mpicxx NO_CACHE)
if(kzero_default_mpicxx)
  file(REAL_PATH "${kzero_default_mpicxx}" kzero_default_mpicxx)
endif()
if(NOT MPI_CXX_COMPILER AND NOT HDF5_ROOT AND kzero_default_mpicxx STREQUAL "/usr/bin/opal_wrapper" AND EXISTS /usr/bin/mpicxx.mpich)
  set(MPI_CXX_COMPILER /usr/bin/mpicxx.mpich CACHE FILEPATH "The compiler wrapper of the MPI library")
  message(STATUS "MPICH is used, although Open MPI is Debian's default here (-DMPI_CXX_COMPILER=/usr/bin/mpicxx.openmpi)")
endif()
if(MPI_CXX_COMPILER MATCHES "^(.*)/bin/mpicxx\\.(mpich|openmpi)$")
  set(kzero_mpi_prefix ${CMAKE_MATCH_1})
  set(kzero_mpi_name ${CMAKE_MATCH_2})
  find_program(MPIEXEC_EXECUTABLE mpiexec.${kzero_mpi_name} HINTS ${kzero_mpi_prefix}/bin)
  set(kzero_debian_hdf5 ${kzero_mpi_prefix}/lib/${CMAKE_LIBRARY_ARCHITECTURE}/hdf5/${kzero_mpi_name})
  if(NOT HDF5_ROOT AND EXISTS ${kzero_debian_hdf5})
    set(HDF5_ROOT ${kzero_debian_hdf5} CACHE PATH "The folder of an HDF5 that was built with the MPI library")
  endif()
endif()
find_package(MPI REQUIRED COMPONENTS CXX)

# A serial HDF5 cannot write shared shards.
set(HDF5_PREFER_PARALLEL ON)
find_package(HDF5 1.10 REQUIRED COMPONENTS C)
if(NOT HDF5_IS_PARALLEL)
  message(FATAL_ERROR "The HDF5 found at ${HDF5_C_LIBRARIES} has no MPI support. "
                      "Install libhdf5-mpich-dev or point HDF5_ROOT to a parallel build.")
endif()

# "Open MPI" or "MPICH or its ABI", whichever one of the libraries is or needs; empty if that cannot be seen.
function(kzero_mpi_of result)
  set(${result} "" PARENT_SCOPE)
  foreach(library IN LISTS ARGN)
    if(library MATCHES "\\.so" AND EXISTS ${library} AND CMAKE_READELF)
      execute_process(COMMAND ${CMAKE_READELF} -d ${library} OUTPUT_VARIABLE dynamic ERROR_QUIET)
      if(dynamic MATCHES "\\[libmpi\\.so\\.[2-9][0-9]\\]")
        set(${result} "Open MPI" PARENT_SCOPE)
      elseif(dynamic MATCHES "\\[libmpi(ch)?\\.so\\.12\\]")
        set(${result} "MPICH or its ABI" PARENT_SCOPE)
      endif()
    endif()
  endforeach()
endfunction()

# With the libraries of two MPIs in one process, messages and files would go over different ones.
kzero_mpi_of(kzero_mpi ${MPI_CXX_LIBRARIES})
kzero_mpi_of(kzero_mpi_of_hdf5 ${HDF5_C_LIBRARIES})
if(kzero_mpi AND kzero_mpi_of_hdf5 AND NOT kzero_mpi STREQUAL kzero_mpi_of_hdf5)
  message(FATAL_ERROR "The HDF5 found at ${HDF5_C_LIBRARIES} was built with ${kzero_mpi_of_hdf5}, but ${MPI_CXX_COMPILER} is for "
                      "${kzero_mpi}. Name a pair: on Debian by -DMPI_CXX_COMPILER=/usr/bin/mpicxx.mpich or mpicxx.openmpi, "
                      "elsewhere also by -DHDF5_ROOT=FOLDER.")
endif()

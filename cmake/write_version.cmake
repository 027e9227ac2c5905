# Writes OUTPUT with the version and git hash of SOURCE; touches it only when something changed.
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
                OUTPUT_VARIABLE hash OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT hash)
  set(hash unknown)
else()
  execute_process(COMMAND git -C ${SOURCE} status --porcelain --untracked-files=no
                  OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    string(APPEND hash "+changes")
  endif()
endif()
if(NOT MPI_LAUNCHER)  # MPIEXEC_EXECUTABLE-NOTFOUND
  set(MPI_LAUNCHER)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#define KZERO_VERSION "@VERSION@"
#define KZERO_GIT_HASH "@hash@"
#define KZERO_COMPILER "@COMPILER@"
#define KZERO_BUILD_TYPE "@BUILD_TYPE@"
#define KZERO_MPI_LAUNCHER "@MPI_LAUNCHER@"
]])

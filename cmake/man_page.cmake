# Writes the manual page PAGE by running the program KZERO; removes it, and says so, where the program does not start.
execute_process(COMMAND ${KZERO} man OUTPUT_FILE ${PAGE} RESULT_VARIABLE failed ERROR_VARIABLE why)
if(failed)
  file(REMOVE ${PAGE})
  message("kzero.1 is not made, as the program does not start here (${failed}): ${why}")
endif()

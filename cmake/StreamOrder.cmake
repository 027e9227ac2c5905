# A build in which every stream is a thread to ThreadSanitizer, so that it reports work of two streams on the same memory
# that no event orders: tests/stream_order.

# Compiles a target and all that link it for this, and adds the sources that stand for streams and events. Calls on
# entering and leaving functions are left out, as a kernel begins on one stack of them and ends on another.
function(kzero_streams_as_fibers target)
  if(NOT KZERO_STAND_IN_DEVICE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    message(FATAL_ERROR "KZERO_STREAM_ORDER needs KZERO_STAND_IN_DEVICE and g++")
  endif()
  set(here ${PROJECT_SOURCE_DIR}/tests/stream_order)
  target_compile_definitions(${target} PUBLIC KZERO_STREAM_ORDER)
  target_compile_options(${target} PUBLIC
    -O1 -g1 -fsanitize=thread --param=tsan-instrument-func-entry-exit=0 -Wno-tsan -Wno-maybe-uninitialized
    "SHELL:-include ${here}/serial_streams.hpp")
  target_link_options(${target} PUBLIC -fsanitize=thread)
  set(sources ${here}/device_memory.cpp ${here}/messages.cpp ${here}/omissions.cpp ${here}/streams.cpp)
  target_sources(${target} PRIVATE ${sources})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS -fno-sanitize=thread)
endfunction()

// Standard output as the place of a command's result: whether everything printed has arrived.
#pragma once

#include "base/error.hpp"

namespace kzero::app {

/// Opens those of descriptors 0 to 2 that are closed, so that reading or writing them fails.
/// Otherwise the next file to be opened would get the number, and output would be written into that
/// file. Call it before anything is opened.
void reserve_standard_descriptors();

/// Records from now on why a write to std::cout fails; streams keep no reason. Call it before the
/// first output.
void watch_output();

/// Flushes std::cout. Returns the error number of the first write that has failed; 0: none has.
int output_error();

/// Returns the exit code of a command that ends with `code` and whose result is its output: `files`
/// instead of `done`, with a message, if standard output could not be written. A reader that has
/// closed its pipe (head, for example) has what it wanted.
ExitCode code_with_output(ExitCode code);

}  // namespace kzero::app

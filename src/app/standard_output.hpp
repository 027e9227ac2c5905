// Standard output as the destination of a command's result: detects whether everything was written.
#pragma once

#include "base/error.hpp"

namespace kzero::app {

/// Opens those of descriptors 0 to 2 that are closed, so that reading or writing them fails.
/// Otherwise the next opened file would get the number, and output would be written into it. Call
/// this before anything is opened.
void reserve_standard_descriptors();

/// From now on records why a write to std::cout fails; streams do not keep the reason. Call it
/// before the first output.
void watch_output();

/// Flushes std::cout. Returns the error number of the first write that failed; 0 if none did.
int output_error();

/// Returns the exit code of a command that ends with `code` and whose result is its output. If
/// standard output could not be written, this is `files` instead of `done`, with a message. It is
/// not an error if the reader closes its pipe (head, for example).
ExitCode code_with_output(ExitCode code);

}  // namespace kzero::app

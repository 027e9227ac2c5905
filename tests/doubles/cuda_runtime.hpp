// What tests ask of the stand-in for CUDA's runtime.
#pragma once

#include <string>
#include <vector>

namespace kzero::doubles {

/// The calls so far, in order: "record", "wait", "query", "synchronize", "device 3".
std::vector<std::string>& cuda_calls();

/// From now on a launch has failed, with an error that stays.
void fail_launches(bool failed);

/// Whether events that are asked for have been reached.
void set_reached(bool reached);

/// The current device of the calling thread; a thread begins with 0.
int current_device();

}  // namespace kzero::doubles

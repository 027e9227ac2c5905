#include "base/abandoned_run.hpp"

#include <atomic>

namespace kzero {

namespace {

std::atomic<bool> abandoned = false;

}  // namespace

void abandon_run() { abandoned = true; }

bool run_is_abandoned() { return abandoned; }

}  // namespace kzero

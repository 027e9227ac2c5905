#include "train/failure.hpp"

#include <fmt/format.h>

#include <exception>
#include <iostream>
#include <new>

#include "grid/process_grid.hpp"
#include "runtime/host_name.hpp"
#include "runtime/launch.hpp"

namespace kzero::train {

Failure current_failure() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.what(), error.code()};
  } catch (const std::bad_alloc&) {
    return {"no more memory", ExitCode::memory};
  } catch (const std::exception& error) {
    return {error.what(), ExitCode::other};
  } catch (...) {
    return {"an unknown kind of failure", ExitCode::other};
  }
}

void end_launch(const Failure& failure) {
  const auto rank = runtime::launch_rank();
  const std::string place =
      rank ? fmt::format("rank {} on {}: ", *rank, runtime::host_name()) : std::string();
  std::cerr << fmt::format("kzero: {}{}\n", place, failure.text) << std::flush;
  grid::abort_launch(static_cast<int>(failure.code));
}

}  // namespace kzero::train

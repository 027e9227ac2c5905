// Runs steps that may fail on some ranks only, such as writing to a disk that is full on one node.
// All ranks then end the step alike, so that no rank waits for one that has given up.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "base/error.hpp"
#include "grid/group.hpp"

namespace kzero::grid {

/// Runs f() on this rank. If f throws on any rank, every rank throws the Error of the lowest such
/// rank. Collective over `group`; f itself must not be collective.
template <class F>
void collectively(const Group& group, F&& f) {
  std::string problem;
  ExitCode code = ExitCode::other;
  try {
    f();
  } catch (const Error& error) {
    problem = error.what();
    code = error.code();
  } catch (const std::bad_alloc&) {
    problem = "no more memory";
    code = ExitCode::memory;
  } catch (const std::exception& error) {
    problem = error.what();
  }
  group.agree(problem, static_cast<int>(code));
}

}  // namespace kzero::grid

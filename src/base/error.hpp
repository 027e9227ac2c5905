// Error handling: one exception type that carries the process's exit code, and two checks.
// KZERO_REQUIRE is for facts of the run (always on); KZERO_EXPECT is for programming mistakes
// (debug builds).
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace kzero {

/// Exit codes of the process, from which the batch script learns how the run ended.
enum class ExitCode : int {
  done = 0,
  other = 1,
  usage = 2,     // command line or deck
  memory = 3,    // does not fit
  files = 4,     // reading or writing
  diverged = 5,  // training became numerically meaningless
  stopped = 75,  // stopped in time with a checkpoint: submit again
};

/// An error for the user. The text says what is wrong, the value found, what is allowed and what to
/// change.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// Throws Error with a formatted text.
template <class... Args>
[[noreturn]] void fail(ExitCode code, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(code, fmt::format(text, std::forward<Args>(args)...));
}

[[noreturn]] void expectation_failed(const char* condition, const char* file, int line);

}  // namespace kzero

/// Throws Error(code, formatted text) unless the condition holds.
#define KZERO_REQUIRE(condition, code, ...)             \
  do {                                                  \
    if (!(condition)) ::kzero::fail(code, __VA_ARGS__); \
  } while (false)

#ifdef NDEBUG
#define KZERO_EXPECT(condition) ((void)0)
#else
/// Stops a debug build at a broken precondition.
#define KZERO_EXPECT(condition)                                                    \
  do {                                                                             \
    if (!(condition)) ::kzero::expectation_failed(#condition, __FILE__, __LINE__); \
  } while (false)
#endif

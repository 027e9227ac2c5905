// The bytes of a generation's prompts: a file, or standard input. They are read by a thread, from
// the start of the program where a launcher passes standard input on.
#pragma once

#include <future>
#include <string>

#include "base/types.hpp"

namespace kzero::app {

constexpr Index most_prompt_bytes = Index{256} << 20;

class PromptInput {
 public:
  /// `file` is a path; "-" or an empty one is standard input.
  explicit PromptInput(const std::string& file);

  /// Begins to read, unless that has begun. Standard input of a launched rank is a pipe of 64 KiB:
  /// while MPI starts nobody else would empty it, and MPICH's launcher ends a launch in which it is
  /// full.
  void start();

  bool is_standard_input() const { return file_.empty(); }
  /// How messages name it.
  std::string name() const { return is_standard_input() ? "standard input" : file_; }

  /// Waits for the end of the input and returns all of it; to be called once. Throws Error(files)
  /// if it cannot be read or has more than `most_prompt_bytes`.
  std::string text();

 private:
  std::string file_;
  std::future<std::string> text_;
};

}  // namespace kzero::app

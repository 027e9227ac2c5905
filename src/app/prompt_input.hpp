// The bytes of a generation's prompts: a file, or standard input. If a launcher forwards standard
// input, a thread reads it from the start of the program.
#pragma once

#include <future>
#include <string>

#include "base/types.hpp"

namespace kzero::app {

constexpr Index max_prompt_bytes = Index{256} << 20;

class PromptInput {
 public:
  /// `file` is a path; "-" or an empty text means standard input.
  explicit PromptInput(const std::string& file);

  /// Begins to read, unless reading has begun. Standard input of a launched rank is a pipe of 64
  /// KiB. While MPI starts nobody else would empty it, and MPICH's launcher ends a launch whose
  /// pipe is full.
  void start();

  bool is_standard_input() const { return file_.empty(); }
  /// Its name in messages.
  std::string name() const { return is_standard_input() ? "standard input" : file_; }

  /// Waits for the end of the input and returns all of it. Throws Error(files) if it cannot be read
  /// or has more than `max_prompt_bytes`.
  const std::string& text();

 private:
  std::string file_;
  std::shared_future<std::string> text_;
};

}  // namespace kzero::app

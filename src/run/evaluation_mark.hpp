// A file in the checkpoint folder that marks a step's evaluations as begun, so that a restart
// completes them after a stop or a lost node. It exists only until they are complete.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::run {

inline constexpr const char* evaluation_mark_name = "unfinished_evaluation";

/// The evaluations of a step, some of which may be complete.
struct BegunEvaluations {
  Index step = 0;                       // steps done when they began
  std::vector<std::string> complete{};  // names without line ends

  bool operator==(const BegunEvaluations&) const = default;
};

/// Only the process that holds the folder's lock may call the functions.
class EvaluationMark {
 public:
  /// An empty folder name means a run without checkpoints, which writes no mark.
  explicit EvaluationMark(const std::string& folder);

  /// Replaces the mark durably. Throws Error(files).
  void write(const BegunEvaluations& begun) const;

  /// Removes the mark. Throws Error(files).
  void remove() const;

  /// Returns the contents of the mark, or nullopt if it is missing or damaged.
  std::optional<BegunEvaluations> read() const;

 private:
  std::filesystem::path path_;  // empty: no marks
};

}  // namespace kzero::run

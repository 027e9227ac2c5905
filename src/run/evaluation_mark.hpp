// Remembers in the folder of checkpoints that the evaluations of a step have begun, so that a
// restart completes what a stop or a lost node interrupted. The file exists only in between.
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
  Index step = 0;                       // steps done before them
  std::vector<std::string> complete{};  // names without line ends

  bool operator==(const BegunEvaluations&) const = default;
};

/// The functions are for the one process that holds the folder's lock.
class EvaluationMark {
 public:
  /// An empty folder name stands for a run without checkpoints, which leaves no mark.
  explicit EvaluationMark(const std::string& folder);

  /// Replaces the mark, durably. Throws Error(files).
  void write(const BegunEvaluations& begun) const;

  /// Removes the mark. Throws Error(files).
  void remove() const;

  /// Returns what the mark contains; none without one. A damaged mark counts as none.
  std::optional<BegunEvaluations> read() const;

 private:
  std::filesystem::path path_;  // empty: no marks
};

}  // namespace kzero::run

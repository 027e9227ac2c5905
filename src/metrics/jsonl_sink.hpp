// The metrics file: one JSON object per line. Each line is written in one call, so that a killed
// run leaves at most one broken last line. A restart appends. If it repeats steps, the last record
// of a step counts.
#pragma once

#include <string>
#include <utility>

#include "metrics/line_file.hpp"
#include "metrics/node_times.hpp"
#include "metrics/records.hpp"

namespace kzero::metrics {

/// Doubles are printed so that they read back exactly; those that are not finite become null. Every
/// object contains the time at which it is written.
class JsonlSink {
 public:
  /// Opens the file, see LineFile. With an empty path nothing is written. On failure every function
  /// throws Error(files) naming the file.
  explicit JsonlSink(std::string path) : file_(std::move(path)) {}

  /// Writes the start record, which must come first: a run from step 0 begins a new file, a restart
  /// appends.
  void write(const StartRecord& record);
  void write(const StepRecord& record);
  void write(const ValidationRecord& record);
  void write(const EvaluationRecord& record);
  void write(const CheckpointRecord& record);
  void write(const NodesRecord& record);
  void write(const EndRecord& record);

  /// The name to which the start record renamed an earlier run's file; empty if there was none.
  const std::string& old_name() const { return file_.old_name(); }

 private:
  LineFile file_;
};

}  // namespace kzero::metrics

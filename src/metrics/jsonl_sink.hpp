// The metrics file: one JSON object a line, written whole and at once, so that a killed run leaves
// at most one broken last line. A restart appends; where it repeats steps, the last record of a
// step counts.
#pragma once

#include <string>
#include <utility>

#include "metrics/line_file.hpp"
#include "metrics/records.hpp"

namespace kzero::metrics {

/// Doubles are printed so that they read back exactly; those not finite become null.
class JsonlSink {
 public:
  /// Opens the file, see LineFile. An empty path: writes nothing. Every function throws
  /// Error(files) naming the file on failure.
  explicit JsonlSink(std::string path) : file_(std::move(path)) {}

  /// To be written first: a run from step 0 begins a file of its own, a restart appends.
  void write(const StartRecord& record);
  void write(const StepRecord& record);
  void write(const ValidationRecord& record);
  void write(const CheckpointRecord& record);
  void write(const EndRecord& record);

  /// The name that the start record gave to an earlier run's file; empty: there was none.
  const std::string& old_name() const { return file_.old_name(); }

 private:
  LineFile file_;
};

}  // namespace kzero::metrics

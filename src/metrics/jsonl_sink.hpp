// The metrics file: one JSON object a line, written whole and at once, so that a killed run leaves
// at most one broken last line. A restart appends; where it repeats steps, the last record of a
// step counts.
#pragma once

#include <string>

#include "metrics/records.hpp"

namespace kzero::metrics {

/// Doubles are printed so that they read back exactly; those not finite become null.
class JsonlSink {
 public:
  /// Opens for appending and makes the folder where there is none. An empty path: writes nothing.
  /// Every function throws Error(files) naming the file on failure.
  explicit JsonlSink(std::string path);
  ~JsonlSink();
  JsonlSink(const JsonlSink&) = delete;
  JsonlSink& operator=(const JsonlSink&) = delete;

  void write(const StartRecord& record);
  void write(const StepRecord& record);
  void write(const ValidationRecord& record);
  void write(const CheckpointRecord& record);
  void write(const EndRecord& record);

 private:
  void write_line(const std::string& text);

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace kzero::metrics

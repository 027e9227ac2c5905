// The file of a time line: one JSON object in Chrome's trace event format, for chrome://tracing and
// Perfetto. Its processes are ranks, and their threads are the rank's threads.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/timeline.hpp"
#include "storage/files.hpp"

namespace kzero::run {

/// A rank's time line without its spans. Times are nanoseconds of the rank's own clock.
struct TracedRank {
  std::string host;
  std::vector<std::string> lanes;
  std::int64_t begin = 0, end = 0;
  std::int64_t ahead = 0;           // of the rank's clock relative to the root's
  std::int64_t clock_accuracy = 0;  // of `ahead`
  Index lost = 0;                   // spans that did not fit
};

/// Throws Error(files) if the path exists and is not an earlier time line.
void require_trace_file(const std::filesystem::path& path);

/// Writes PATH.partial, and renames it when it is complete.
class TraceFile {
 public:
  /// `steps` describes the recorded steps in the file. Throws Error(files), as do all functions.
  TraceFile(std::filesystem::path path, std::string steps, std::vector<TracedRank> ranks);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  /// Appends spans of a rank, given as the bytes of complete records.
  void append(int rank, std::span<const std::byte> records);

  void finish();

  /// Describes in one or two lines what the file contains and lacks.
  std::string summary() const;

 private:
  void write_names();
  void write_span(int rank, const SpanRecord& span);
  void put(const std::string& event);
  void flush();
  double microseconds(const TracedRank& rank, std::int64_t time) const;
  double accuracy() const;

  std::filesystem::path path_, partial_;
  std::string steps_;
  std::vector<TracedRank> ranks_;
  storage::OutputFile file_;
  std::string text_;   // not yet in the file
  Index written_ = 0;  // bytes
  Index spans_ = 0;
  std::int64_t zero_ = 0;  // origin of the file's times, on the root's clock
  bool finished_ = false;
};

}  // namespace kzero::run

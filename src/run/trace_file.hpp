// The file of a time line: one JSON object in Chrome's trace event format. chrome://tracing and
// Perfetto open it. A rank is a process in the file, and each lane of the rank is a thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/timeline.hpp"
#include "storage/atomic_file.hpp"

namespace kzero::run {

/// A rank's time line without its spans. Times are nanoseconds of the rank's own clock.
struct TracedRank {
  std::string host;
  std::vector<std::string> lanes;
  std::int64_t begin = 0, end = 0;
  std::int64_t ahead = 0;           // rank's clock minus the root's
  std::int64_t clock_accuracy = 0;  // of `ahead`
  Index lost = 0;                   // spans that did not fit
};

/// Throws Error(files) if `path` exists and is neither empty nor an earlier time line.
void require_trace_file(const std::filesystem::path& path);

/// Writes a time line. The file gets its name once it is complete.
class TraceFile {
 public:
  /// `steps` describes the recorded steps in the file. Throws Error(files), as append() and
  /// finish() do.
  TraceFile(std::filesystem::path path, std::string steps, std::vector<TracedRank> ranks);

  /// Appends spans of a rank. `records` are the bytes of complete SpanRecords.
  void append(int rank, std::span<const std::byte> records);

  void finish();

  /// Describes in one or two lines what the file contains and what is missing.
  std::string summary() const;

 private:
  void write_names();
  void write_span(int rank, const SpanRecord& span);
  void put(const std::string& event);
  void flush();
  double microseconds(const TracedRank& rank, std::int64_t time) const;
  double accuracy() const;

  std::filesystem::path path_;
  std::string steps_;
  std::vector<TracedRank> ranks_;
  storage::AtomicFile file_;
  std::string text_;  // not yet written to the file
  Index spans_ = 0;
  std::int64_t zero_ = 0;  // origin of the file's times, on the root's clock
};

}  // namespace kzero::run

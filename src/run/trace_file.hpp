// The file of a time line: one JSON object in Chrome's trace event format, which chrome://tracing
// and Perfetto open. A process of it is a rank, a thread is a thread of that rank.
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
  std::int64_t ahead = 0;           // of the rank's clock against the root's
  std::int64_t clock_accuracy = 0;  // of `ahead`
  Index lost = 0;                   // spans that did not fit
};

/// Throws Error(files) if there is something other than an earlier time line under that name.
void require_trace_file(const std::filesystem::path& path);

/// Writes PATH.partial, and gives it its name once it is complete.
class TraceFile {
 public:
  /// `steps` is what the file says of the recorded steps. Throws Error(files), as all functions do.
  TraceFile(std::filesystem::path path, std::string steps, std::vector<TracedRank> ranks);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  /// Appends spans of a rank, given as the bytes of complete records.
  void append(int rank, std::span<const std::byte> records);

  void finish();

  /// Says in a line or two what the file holds, and what is missing in it.
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
  std::string text_;   // that is not yet in the file
  Index written_ = 0;  // bytes
  Index spans_ = 0;
  std::int64_t zero_ = 0;  // of the file's times, by the root's clock
  bool finished_ = false;
};

}  // namespace kzero::run

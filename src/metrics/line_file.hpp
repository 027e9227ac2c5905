// Opens the metrics file, keeps the lines of an earlier run, and appends complete lines. Does not
// know what the lines contain.
#pragma once

#include <string>

#include "base/types.hpp"

namespace kzero::metrics {

/// Accepts a file that begins like a metrics file, and a missing file. Throws Error(files), naming
/// the file, for everything else. Changes nothing and never blocks.
void require_metrics_file(const std::string& path);

class LineFile {
 public:
  /// Opens the file. Creates it and its folder if they are missing; does not change an existing
  /// file. With an empty path nothing is ever written. Every function throws Error(files) naming
  /// the file; this one also throws whatever require_metrics_file() throws.
  explicit LineFile(std::string path);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  /// Prepares for the lines of a new run. A non-empty file is renamed to NAME.N.jsonl, with N one
  /// above that of every existing such file, and an empty file takes its place.
  void start_afresh();

  /// Prepares for the lines of a resumed run: drops a last line that a crash truncated.
  void go_on();

  /// Writes the text and its line end in one call.
  void write_line(const std::string& text);

  /// The name that start_afresh() gave to the file of an earlier run; empty if there was none.
  const std::string& old_name() const { return old_name_; }

 private:
  void open();
  void close();

  std::string path_;
  int descriptor_ = -1;
  std::string old_name_;
};

}  // namespace kzero::metrics

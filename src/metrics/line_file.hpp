// The metrics file as a file: which files are taken, what becomes of an earlier run's lines, and
// whole lines appended to it. Does not know what a record holds.
#pragma once

#include <string>

#include "base/types.hpp"

namespace kzero::metrics {

/// Refuses what is not a file, and a file that does not begin as metrics do; one that is not there
/// may be made. Changes nothing and waits for nothing. Throws Error(files) naming the file.
void require_metrics_file(const std::string& path);

class LineFile {
 public:
  /// Opens the file and makes it and its folder where there are none; changes nothing in a file
  /// that exists. An empty path: nothing is ever written. Every function throws Error(files) naming
  /// the file; this one also what require_metrics_file() throws.
  explicit LineFile(std::string path);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  /// Before the lines of a new run: a file that holds any is renamed to NAME.N.jsonl, with N one
  /// above that of every such file, and an empty one takes its place.
  void start_afresh();

  /// Before the lines of a run that goes on: drops a last line that a crash cut short.
  void go_on();

  /// Writes the text and its end at once.
  void write_line(const std::string& text);

  /// The name that start_afresh() gave to the file of an earlier run; empty: there was none.
  const std::string& old_name() const { return old_name_; }

 private:
  void open();
  void close();

  std::string path_;
  int descriptor_ = -1;
  std::string old_name_;
};

}  // namespace kzero::metrics

// What people see of a run: a header, a line a step with the time left, events, and at the end a
// summary of memory and traffic beside the plan. On a terminal a progress bar is redrawn in place
// below the lines. Standard output only; errors are the caller's. Does not know where the numbers
// come from.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "metrics/meters.hpp"
#include "metrics/records.hpp"

namespace kzero::metrics {

enum class ConsoleMode {
  silent,  // ranks other than 0
  lines,   // files and pipes
  bar,     // terminals
};

/// `bar` where standard output is a terminal, else `lines`; `silent` on every rank but 0.
ConsoleMode console_mode(Index rank);

class Console {
 public:
  /// Prints a step line every `log_every` >= 1 steps, and for the last and for skipped steps.
  Console(std::ostream& out, ConsoleMode mode, Index log_every);

  /// Before the first step: what runs, where, in which precision, and its planned memory.
  void start(const StartRecord& record);
  void step(const StepRecord& record);
  void validation(const ValidationRecord& record);
  void checkpoint(const CheckpointRecord& record);

  /// Any other event, in the caller's words: one line, given without its end.
  void note(const std::string& text);

  /// The closing summary.
  void end(const EndRecord& record);

 private:
  void print_line(const std::string& text);
  void erase_bar();
  void draw_bar();
  std::string time_left() const;

  std::ostream& out_;
  ConsoleMode mode_;
  Index log_every_;
  Index steps_ = 0;      // of the whole run
  StepRecord last_;      // what the bar shows
  bool bar_on_ = false;  // the bar stands on the current line
  MovingMedian step_seconds_;
  Index skipped_ = 0;
};

/// What one rank sends in a step: elements, theory and bytes of each row, under a heading.
std::string traffic_table(const std::vector<TrafficRow>& rows);

/// "84.2 k", "12.6 M": counts for people.
std::string format_count(double count);

/// "2 h 05 min", "1 min 20 s", "12.3 s": seconds for people.
std::string format_seconds(double seconds);

}  // namespace kzero::metrics

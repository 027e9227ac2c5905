// What people see of a run: a header, a line an interval with the time left, events, and at the end
// a summary of memory and traffic beside the plan. On a terminal one live line is redrawn in place
// below the lines. Standard output only; errors are the caller's. Does not know where the numbers
// come from.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "metrics/meters.hpp"
#include "metrics/progress.hpp"
#include "metrics/records.hpp"

namespace kzero::metrics {

enum class ConsoleMode {
  silent,  // ranks other than 0
  lines,   // files and pipes
  live,    // terminals
};

/// Where a run is shown.
struct Screen {
  ConsoleMode mode = ConsoleMode::lines;
  std::function<Index()> columns{};  // the width now, asked for before each drawing; 0: unknown
};

/// On rank 0 `live` where a terminal shows standard output and knows its width, else `lines`;
/// `silent` on every other rank.
Screen found_screen(Index rank);

/// On rank 0 `live` in any case; 80 columns where the width cannot be known. Else `silent`.
Screen live_screen(Index rank);

/// On rank 0 `lines`, else `silent`.
Screen plain_screen(Index rank);

class Console {
 public:
  /// Prints a step line every `log_every` >= 1 steps, and for the last and for skipped steps. Loss
  /// and rates are means over the steps since the line before.
  Console(std::ostream& out, Screen screen, Index log_every);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

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
  std::string erasure() const;
  std::string drawing();
  void redraw();
  Progress progress(const StepMeans& means) const;
  Index columns() const;

  std::ostream& out_;
  Screen screen_;
  Index log_every_;
  Index steps_ = 0;           // of the whole run
  StepRecord last_;           // the newest
  StepMeans interval_, job_;  // since the last line; since the start
  StepMeans shown_;           // of the live line
  SteadyPace pace_;
  Index skipped_ = 0;
  bool is_running_ = false;  // between the first step and the summary: the live line has content
  bool is_drawn_ = false;    // the live line stands on the terminal
  double since_drawn_ = 0;   // seconds of steps
};

/// What one rank sends in a step: elements, theory and bytes of each row, under a heading.
std::string traffic_table(const std::vector<TrafficRow>& rows);

}  // namespace kzero::metrics

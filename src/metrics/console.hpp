// The console output of a run: a header, one line per interval with the time left, events, and at
// the end a summary that compares memory and traffic with the plan and repeats the last losses. On
// a terminal one live line is redrawn in place below the lines. It writes only to standard output;
// errors are the caller's concern. It does not know where the numbers come from.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "metrics/closing_report.hpp"
#include "metrics/meters.hpp"
#include "metrics/progress.hpp"
#include "metrics/records.hpp"

namespace kzero::metrics {

enum class ConsoleMode {
  silent,  // ranks other than 0
  lines,   // files and pipes, also those of launchers
  live,    // terminals
};

/// The display of a run.
struct Screen {
  ConsoleMode mode = ConsoleMode::lines;
  std::function<Index()> columns{};  // the current width, queried before each redraw; 0: unknown
};

/// On rank 0, returns `live` if standard output is a terminal that can erase and reports its width,
/// otherwise `lines`: also in a launcher's pipe. On every other rank returns `silent`.
Screen found_screen(Index rank);

/// On rank 0, always returns `live`, with 80 columns if the width cannot be determined. On every
/// other rank returns `silent`.
Screen live_screen(Index rank);

/// Returns `lines` on rank 0, `silent` on every other rank.
Screen plain_screen(Index rank);

class Console {
 public:
  /// Prints a step line every `log_every` >= 1 steps, and also for the last step and for skipped
  /// steps. Loss and rates are means over the steps since the previous line. `detail` is that of
  /// the closing summary.
  Console(std::ostream& out, Screen screen, Index log_every, Detail detail = Detail::brief);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// Prints the header before the first step: program, machine, precision, planned memory.
  void start(const StartRecord& record);
  void step(const StepRecord& record);
  void validation(const ValidationRecord& record);
  void evaluation(const EvaluationRecord& record);
  void checkpoint(const CheckpointRecord& record);

  /// Prints any other event as one line, and nothing for an empty text. `text` has no line end.
  void note(const std::string& text);

  /// Prints the closing summary, the losses last.
  void end(const EndRecord& record);

 private:
  /// The losses of a set that this job has evaluated.
  struct Evaluated {
    std::string name;
    std::optional<double> before_steps;  // before the first step of the run
    std::optional<double> last;          // the newest after a step
  };

  void print_line(const std::string& text);
  void remember(const std::string& name, Index step, double loss);
  void print_losses();
  std::string erasure() const;
  std::string drawing();
  void redraw();
  Progress progress(const StepMeans& means) const;
  Index columns() const;

  std::ostream& out_;
  Screen screen_;
  Index log_every_;
  Detail detail_;
  Index steps_ = 0;           // of all jobs of the run
  StepRecord last_;           // the newest
  StepMeans interval_, job_;  // since the last line; since the start
  StepMeans shown_;           // of the live line, and of the last loss
  std::vector<Evaluated> evaluated_;
  StepWork work_;    // of the run's steps
  SteadyPace pace_;  // of a step of the first batch
  Index skipped_ = 0;
  bool is_peak_measured_ = false;
  bool is_running_ = false;  // between the first step and the summary: the live line has content
  bool is_drawn_ = false;    // the live line is visible on the terminal
  double since_drawn_ = 0;   // seconds of steps
};

}  // namespace kzero::metrics

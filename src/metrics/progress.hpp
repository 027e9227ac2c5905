// The progress of a run as one line of text: a line for logs, and a line for terminals that is
// redrawn in place. Both drop their least important fields if the width is too small for all.
#pragma once

#include <string>

#include "metrics/records.hpp"

namespace kzero::metrics {

struct Progress {
  StepRecord last{};  // the newest step
  Index steps = 0;    // of all jobs of the run
  double loss = 0;    // mean over the steps shown; NaN if all were skipped
  double tokens_per_second = 0;
  double mfu = 0;
  double seconds_left = 0;
};

/// Formats "step   50/1000  loss 3.0134 ..." in at most `columns` characters; for a skipped step,
/// the reason. Fields keep their columns from step to step.
std::string step_line(const Progress& progress, Index columns);

/// Formats "[====    ] 50/1000  loss 3.0134 ..." in at most `columns` characters.
std::string live_line(const Progress& progress, Index columns);

/// Formats counts for people: "8192", "84.2 k", "5.0 G". At most 7 characters below 1e15.
std::string format_count(double count);

/// Formats seconds for people: "2 h 05 min", "1 min 20 s", "12.3 s".
std::string format_seconds(double seconds);

/// Formats seconds where space is short: "4d07h", "2h05m", "1m20s", "12s".
std::string format_short_seconds(double seconds);

}  // namespace kzero::metrics

#include "metrics/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/bytes.hpp"
#include "base/printable.hpp"
#include "metrics/terminal.hpp"

namespace kzero::metrics {

namespace {

constexpr Index log_columns = 80;      // of lines written to files, and of unknown terminals
constexpr double draw_interval = 0.1;  // seconds of steps between two redraws

// The live line begins at the cursor's resting position. A terminal that rewraps its lines when it
// gets narrower then still has the entire line after the cursor, where this erases it.
constexpr const char* erase = "\r\x1b[J";

Index total_bytes(const std::vector<CategoryBytes>& categories, Index CategoryBytes::*which) {
  Index total = 0;
  for (const CategoryBytes& category : categories) total += category.*which;
  return total;
}

/// The items after the heading, separated by commas, wrapped into lines.
std::string wrapped(const std::string& heading, const std::vector<std::string>& items) {
  const std::string indent(12, ' ');
  std::string text, line = heading;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item = items[i] + (i + 1 < items.size() ? "," : "");
    if (line.size() + 1 + item.size() > log_columns) {
      text += line + '\n';
      line = indent + item;
    } else {
      line += (line.empty() ? "" : " ") + item;
    }
  }
  return text + line;
}

std::string plan_line(const std::vector<CategoryBytes>& categories) {
  std::vector<std::string> items;
  for (const CategoryBytes& category : categories) {
    if (category.planned_bytes == 0) continue;
    items.push_back(fmt::format("{} {}", category.name, format_bytes(category.planned_bytes)));
  }
  return wrapped(fmt::format("memory      {} a rank:",
                             format_bytes(total_bytes(categories, &CategoryBytes::planned_bytes))),
                 items);
}

std::string peak_line(const StartRecord& record) {
  const double of_a_rank =
      record.peak.flops_per_second / static_cast<double>(record.data_ranks * record.tensor_ranks);
  std::string line = fmt::format(
      "peak        {}FLOP/s a rank, by {}", format_count(of_a_rank),
      record.peak.measured_width > 0
          ? fmt::format("products of {0} x {0} on all ranks at once", record.peak.measured_width)
          : "run.peak_tflops");
  if (!record.peak.is_disturbed) return line;
  return line +
         ";\n            other work disturbed them, so MFU will be too large: set run.peak_tflops";
}

std::string limit_line(const TimeLimit& limit) {
  const std::string left =
      fmt::format("{} left by {}", format_seconds(limit.seconds_left), limit.source);
  return limit.seconds_left > limit.stop_margin
             ? fmt::format("{}; stops {} before its end", left, format_seconds(limit.stop_margin))
             : fmt::format("{}, run.stop_margin is {}: stops after one step", left,
                           format_seconds(limit.stop_margin));
}

std::string memory_table(const std::vector<MemoryRow>& rows) {
  const auto& fullest =
      *std::max_element(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
        return total_bytes(a.categories, &CategoryBytes::peak_bytes) <
               total_bytes(b.categories, &CategoryBytes::peak_bytes);
      });
  const auto& resident = *std::max_element(
      rows.begin(), rows.end(),
      [](const auto& a, const auto& b) { return a.resident_peak_bytes < b.resident_peak_bytes; });
  const auto line = [](const std::string& name, Index planned, Index peak) {
    return fmt::format("\n  {:<14}{:>14}{:>14}{}", name, format_bytes(planned), format_bytes(peak),
                       planned == peak ? "" : "  differs from the plan");
  };
  std::string text = fmt::format("{:<16}{:>14}{:>14}",
                                 fmt::format("memory of rank {}", fullest.rank), "planned", "peak");
  for (const CategoryBytes& category : fullest.categories) {
    if (category.planned_bytes == 0 && category.peak_bytes == 0) continue;
    text += line(category.name, category.planned_bytes, category.peak_bytes);
  }
  text += line("sum", total_bytes(fullest.categories, &CategoryBytes::planned_bytes),
               total_bytes(fullest.categories, &CategoryBytes::peak_bytes));
  const auto process_line = [](const std::string& name, Index bytes, const std::string& note) {
    return fmt::format("\n  {:<28}{:>14}  {}", name, format_bytes(bytes), note);
  };
  text += process_line("resident", resident.resident_peak_bytes,
                       fmt::format("whole process, most on rank {}", resident.rank));
  text += process_line("beyond the plan", std::max<Index>(0, unplanned_bytes(resident)),
                       "code and libraries");
  return text + process_line("  before the first slab", resident.resident_start_bytes, "of it");
}

}  // namespace

std::string traffic_table(const std::vector<TrafficRow>& rows) {
  constexpr std::size_t names_columns =
      39;  // a row of all names has 79, unless the purpose is long
  const bool leave_nodes = std::ranges::any_of(
      rows, [](const TrafficRow& row) { return row.bytes_between_nodes_per_step > 0; });
  std::string text = fmt::format("{:<{}}{:>12}{:>14}{:>14}", "traffic a step and rank, sent",
                                 names_columns, "elements", "expected", "bytes");
  if (leave_nodes) text += fmt::format("{:>16}", "leave the node");
  for (const TrafficRow& row : rows) {
    const std::string names = fmt::format("  {:<9}{:<16}{}", row.group, row.operation, row.purpose);
    const std::string elements = fmt::format("  {}", row.elements_per_step);
    const std::size_t before = std::max(names.size() + elements.size(), names_columns + 12);
    text += fmt::format("\n{}{:>{}}{:>14}{:>14}", names, elements, before - names.size(),
                        row.expected_elements_per_step, format_bytes(row.bytes_per_step));
    if (leave_nodes) text += fmt::format("{:>16}", format_bytes(row.bytes_between_nodes_per_step));
  }
  return text;
}

Screen plain_screen(Index rank) { return {rank == 0 ? ConsoleMode::lines : ConsoleMode::silent}; }

Screen live_screen(Index rank) {
  if (rank != 0) return plain_screen(rank);
  return {ConsoleMode::live, [terminal = Terminal::behind(STDOUT_FILENO)] {
            return terminal ? terminal->columns() : 0;
          }};
}

Screen found_screen(Index rank) {
  Screen screen = live_screen(rank);
  return screen.columns && screen.columns() > 0 ? screen : plain_screen(rank);
}

Console::Console(std::ostream& out, Screen screen, Index log_every)
    : out_(out), screen_(std::move(screen)), log_every_(std::max<Index>(1, log_every)) {}

Console::~Console() { out_ << erasure() << std::flush; }

Index Console::columns() const {
  const Index now = screen_.columns ? screen_.columns() : 0;
  return now > 0 ? now : log_columns;
}

Progress Console::progress(const StepMeans& means) const {
  return {last_,
          steps_,
          means.loss(),
          means.tokens_per_second(),
          means.mfu(),
          pace_.seconds() * static_cast<double>(std::max<Index>(0, steps_ - last_.step - 1))};
}

std::string Console::erasure() const { return is_drawn_ ? erase : ""; }

/// The last column stays empty: some terminals wrap once it is filled.
std::string Console::drawing() {
  is_drawn_ = is_running_ && screen_.mode == ConsoleMode::live;
  since_drawn_ = 0;
  return is_drawn_ ? live_line(progress(shown_), columns() - 1) + '\r' : "";
}

void Console::redraw() {
  const std::string erased = erasure();
  out_ << erased + drawing() << std::flush;
}

/// Written in one call, so that a terminal rarely shows a part of it.
void Console::print_line(const std::string& text) {
  if (screen_.mode == ConsoleMode::silent) return;
  const std::string line = erasure() + printable_lines(text) + '\n';
  out_ << line + drawing() << std::flush;
}

void Console::start(const StartRecord& record) {
  steps_ = record.steps;
  std::vector<std::string> versions;
  for (const auto& [name, version] : record.versions)
    versions.push_back(fmt::format("{} {}", name, version));
  const std::set<std::string> nodes(record.hosts.begin(), record.hosts.end());
  print_line(wrapped("", versions));
  print_line(fmt::format("deck        {}", record.deck_file));
  const std::string sharing = record.sequence_ranks > 1
                                  ? fmt::format(", {} share each sequence", record.sequence_ranks)
                                  : "";
  print_line(fmt::format("grid        {} data x {} tensor ranks{}, {} threads each, on {} {}{}",
                         record.data_ranks, record.tensor_ranks, sharing, record.threads,
                         nodes.size(), nodes.size() == 1 ? "node " : "nodes, first ",
                         record.hosts.empty() ? "" : record.hosts.front()));
  print_line(fmt::format("model       {} parameters, {}, ZeRO stage {}",
                         format_count(static_cast<double>(record.parameters)), record.precision,
                         record.stage));
  print_line(plan_line(record.planned_memory));
  print_line(
      fmt::format("steps       {} of {} tokens{}", record.steps,
                  format_count(static_cast<double>(record.tokens_per_step)),
                  record.first_step > 0 ? fmt::format(", resuming at {}", record.first_step) : ""));
  if (record.peak.flops_per_second > 0) print_line(peak_line(record));
  is_peak_measured_ = record.peak.measured_width > 0;
  print_line(data_lines(record.data));
  print_line(wrapped("bits        depend on", record.bits_depend_on));
  if (record.limit) print_line("limit       " + limit_line(*record.limit));
}

void Console::step(const StepRecord& record) {
  last_ = record;
  pace_.add(record.seconds);
  interval_.add(record);
  job_.add(record);
  shown_ = interval_;
  is_running_ = true;
  since_drawn_ += record.seconds;
  if (record.skipped) ++skipped_;
  const Index done = record.step + 1;
  const bool ends_interval = done % log_every_ == 0 || done == steps_;
  if (ends_interval || record.skipped) {
    const bool is_live = screen_.mode == ConsoleMode::live;
    print_line(step_line(progress(interval_),
                         is_live ? std::min(log_columns, columns() - 1) : log_columns));
  } else if (screen_.mode == ConsoleMode::live && (!is_drawn_ || since_drawn_ >= draw_interval)) {
    redraw();
  }
  if (ends_interval) interval_ = {};
}

void Console::validation(const ValidationRecord& record) {
  print_line(fmt::format("validation after {} steps: loss {:.4f} over {} tokens, {}", record.step,
                         record.loss, format_count(static_cast<double>(record.tokens)),
                         format_seconds(record.seconds)));
}

void Console::evaluation(const EvaluationRecord& record) {
  print_line(fmt::format("evaluation {} after {} steps: loss {:.4f} over {} tokens, {}",
                         record.name, record.step, record.loss,
                         format_count(static_cast<double>(record.tokens)),
                         format_seconds(record.seconds)));
}

void Console::checkpoint(const CheckpointRecord& record) {
  const bool beside = record.stall_seconds < record.seconds;
  print_line(fmt::format(
      "checkpoint after {} steps: {}, {} in {}{}", record.step, record.folder,
      format_bytes(record.bytes), format_seconds(record.seconds),
      beside ? fmt::format(", training waited {}", format_seconds(record.stall_seconds)) : ""));
}

void Console::note(const std::string& text) { print_line(text); }

void Console::end(const EndRecord& record) {
  is_running_ = false;
  if (!record.memory.empty()) print_line(memory_table(record.memory));
  if (!record.traffic.empty()) print_line(traffic_table(record.traffic));
  if (!job_.empty()) {
    print_line(fmt::format("steps of this job   {} tokens/s, MFU {:.1f} %{}",
                           format_count(job_.tokens_per_second()), 100 * job_.mfu(),
                           is_peak_measured_ ? " of the measured peak" : ""));
  }
  if (record.reason == "nothing_to_do") {
    print_line(fmt::format("already at step {} of {}: nothing to do", record.steps, steps_));
    return;
  }
  print_line(fmt::format("{} after {} of {} steps, {}{}", record.reason, record.steps, steps_,
                         format_seconds(record.seconds),
                         skipped_ > 0 ? fmt::format(", {} skipped", skipped_) : ""));
  if (record.spikes.value_or(0) > 0)
    print_line(fmt::format("optimizer.skip_above has skipped {} of all {} steps", *record.spikes,
                           record.steps));
}

}  // namespace kzero::metrics

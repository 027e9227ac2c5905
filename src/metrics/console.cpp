#include "metrics/console.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string_view>

#include "base/bytes.hpp"
#include "base/printable.hpp"
#include "metrics/closing_report.hpp"

namespace kzero::metrics {

namespace {

constexpr Index log_columns = 80;      // of lines written to files, and of unknown terminals
constexpr double draw_interval = 0.1;  // seconds of steps between two redraws

// The live line begins at the cursor's resting position. A terminal that rewraps its lines when it
// gets narrower then still has the entire line after the cursor, where this erases it.
constexpr const char* erase = "\r\x1b[J";

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

/// "4.1 k tokens", or "4.1 k tokens, 8.2 k from step 100 on". Of many phases, the first.
std::string tokens_text(const StartRecord& record) {
  const auto count = [](Index tokens) { return format_count(static_cast<double>(tokens)); };
  if (record.phases.empty()) return count(record.tokens_per_step) + " tokens";
  std::string text = count(record.phases.front().tokens) + " tokens";
  const auto later = std::span(record.phases).subspan(1);
  constexpr std::size_t most = 4;
  for (const StepTokens& phase : later.first(std::min(later.size(), most)))
    text += fmt::format(", {} from step {} on", count(phase.tokens), phase.first_step);
  if (later.size() > most) text += fmt::format(", {} more phases", later.size() - most);
  return text;
}

std::string limit_line(const TimeLimit& limit) {
  const std::string left =
      fmt::format("{} left by {}", format_seconds(limit.seconds_left), limit.source);
  return limit.seconds_left > limit.stop_margin
             ? fmt::format("{}; stops {} before its end", left, format_seconds(limit.stop_margin))
             : fmt::format("{}, run.stop_margin is {}: stops after one step", left,
                           format_seconds(limit.stop_margin));
}

std::string format_joules(double joules) {
  constexpr std::pair<double, const char*> units[] = {{1e12, "TJ"}, {1e9, "GJ"}, {1e6, "MJ"},
                                                      {1e3, "kJ"},  {1, "J"},    {1e-3, "mJ"}};
  for (const auto& [size, unit] : units)
    if (joules >= size) return fmt::format("{:.1f} {}", joules / size, unit);
  return fmt::format("{:.1f} uJ", 1e6 * joules);
}

std::string energy_line(const EnergyRecord& energy) {
  if (!std::isfinite(energy.joules))
    return "energy      not known: a counter could not be read any more";
  std::string line = "energy      " + format_joules(energy.joules);
  if (energy.joules_per_token)
    line += fmt::format(", {} a token", format_joules(*energy.joules_per_token));
  line += fmt::format(", {:.0f} W by", energy.watts);
  for (const std::string& source : energy.sources) line += " " + source;
  if (energy.measured_nodes < energy.nodes)
    line += fmt::format(", {} of {} nodes", energy.measured_nodes, energy.nodes);
  if (energy.measured_devices < energy.devices)
    line += fmt::format(", {} of {} devices", energy.measured_devices, energy.devices);
  return line;
}

/// The width of the terminal on standard output; 0 if it is not a terminal or does not report it.
Index terminal_columns() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

Screen plain_screen(Index rank) { return {rank == 0 ? ConsoleMode::lines : ConsoleMode::silent}; }

Screen live_screen(Index rank) {
  if (rank != 0) return plain_screen(rank);
  return {ConsoleMode::live, terminal_columns};
}

Screen found_screen(Index rank) {
  const char* kind = std::getenv("TERM");
  const bool can_erase = kind == nullptr || std::string_view(kind) != "dumb";
  return can_erase && terminal_columns() > 0 ? live_screen(rank) : plain_screen(rank);
}

Console::Console(std::ostream& out, Screen screen, Index log_every, Detail detail)
    : out_(out),
      screen_(std::move(screen)),
      log_every_(std::max<Index>(1, log_every)),
      detail_(detail) {}

Console::~Console() { out_ << erasure() << std::flush; }

Index Console::columns() const {
  const Index now = screen_.columns ? screen_.columns() : 0;
  return now > 0 ? now : log_columns;
}

Progress Console::progress(const StepMeans& means) const {
  return {last_,        steps_,
          means.loss(), means.tokens_per_second(),
          means.mfu(),  pace_.seconds() * work_.between(last_.step + 1, steps_)};
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
  work_ = StepWork(record.phases);
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
      fmt::format("steps       {} of {}{}", record.steps, tokens_text(record),
                  record.first_step > 0 ? fmt::format(", resuming at {}", record.first_step) : ""));
  if (record.peak.flops_per_second > 0) print_line(peak_line(record));
  is_peak_measured_ = record.peak.measured_width > 0;
  print_line(data_lines(record.data));
  print_line(wrapped("bits        depend on", record.bits_depend_on));
  if (record.limit) print_line("limit       " + limit_line(*record.limit));
}

void Console::step(const StepRecord& record) {
  last_ = record;
  pace_.add(record.seconds / work_.of(record.step));
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
  remember("validation", record.step, record.loss);
  print_line(fmt::format("validation after {} steps: loss {:.4f} over {} tokens, {}", record.step,
                         record.loss, format_count(static_cast<double>(record.tokens)),
                         format_seconds(record.seconds)));
}

void Console::evaluation(const EvaluationRecord& record) {
  remember("evaluation " + record.name, record.step, record.loss);
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

void Console::note(const std::string& text) {
  if (!text.empty()) print_line(text);
}

void Console::remember(const std::string& name, Index step, double loss) {
  auto found = std::ranges::find(evaluated_, name, &Evaluated::name);
  if (found == evaluated_.end()) found = evaluated_.insert(found, {name, {}, {}});
  (step == 0 ? found->before_steps : found->last) = loss;
}

/// Prints the losses that the job ends with. The training loss is that of the last step line.
void Console::print_losses() {
  std::vector<std::string> items;
  if (const Index steps = shown_.losses(); steps > 0)
    items.push_back(fmt::format(
        "training {:.4f}{}", shown_.loss(),
        steps == 1 ? " in the last step" : fmt::format(" over the last {} steps", steps)));
  for (const auto& [name, before, last] : evaluated_) {
    std::string item = fmt::format("{} {:.4f}", name, last ? *last : *before);
    if (!last) item += " before the first step";
    if (last && before) item += fmt::format(" ({:.4f} before the first step)", *before);
    items.push_back(std::move(item));
  }
  if (!items.empty()) print_line(wrapped("loss       ", items));
}

/// Traffic is compared if a step was applied. Skipped steps do not gather updated parameters.
void Console::end(const EndRecord& record) {
  is_running_ = false;
  if (!record.memory.empty()) print_line(memory_report(record.memory, detail_));
  if (!record.traffic.empty() && job_.losses() > 0)
    print_line(traffic_report(record.traffic, detail_));
  if (!job_.empty()) {
    print_line(fmt::format("steps of this job   {} tokens/s, MFU {:.1f} %{}",
                           format_count(job_.tokens_per_second()), 100 * job_.mfu(),
                           is_peak_measured_ ? " of the measured peak" : ""));
  }
  if (record.energy) print_line(energy_line(*record.energy));
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
  print_losses();
}

}  // namespace kzero::metrics

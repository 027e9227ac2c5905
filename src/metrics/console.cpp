#include "metrics/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/bytes.hpp"
#include "base/printable.hpp"

namespace kzero::metrics {

namespace {

constexpr Index bar_width = 24;  // characters; the whole bar line stays below 80

Index total_bytes(const std::vector<CategoryBytes>& categories, Index CategoryBytes::*which) {
  Index total = 0;
  for (const CategoryBytes& category : categories) total += category.*which;
  return total;
}

std::string plan_line(const std::vector<CategoryBytes>& categories) {
  std::string text =
      format_bytes(total_bytes(categories, &CategoryBytes::planned_bytes)) + " a rank:";
  for (const CategoryBytes& category : categories) {
    if (category.planned_bytes == 0) continue;
    text += fmt::format("{} {} {}", text.back() == ':' ? "" : ",", category.name,
                        format_bytes(category.planned_bytes));
  }
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
  text += fmt::format("\n  {:<28}{:>14}  whole process, most on rank {}", "resident",
                      format_bytes(resident.resident_peak_bytes), resident.rank);
  return text + fmt::format("\n  {:<28}{:>14}  code and libraries; {} of it before the first slab",
                            "beyond the plan",
                            format_bytes(std::max<Index>(0, unplanned_bytes(resident))),
                            format_bytes(resident.resident_start_bytes));
}

}  // namespace

std::string traffic_table(const std::vector<TrafficRow>& rows) {
  std::string text =
      fmt::format("traffic a step and rank, sent{:>34}{:>14}{:>13}", "elements", "theory", "bytes");
  for (const TrafficRow& row : rows) {
    text += fmt::format("\n  {:<8}{:<16}{:<26}{:>11}{:>14}{:>13}", row.group, row.operation,
                        row.purpose, row.elements_per_step, row.theory_elements_per_step,
                        format_bytes(row.bytes_per_step));
  }
  return text;
}

std::string format_count(double count) {
  const char* unit = "";
  for (const char* next : {" k", " M", " G", " T"}) {
    if (std::abs(count) < 10000) break;
    count /= 1000;
    unit = next;
  }
  return fmt::format("{:.{}f}{}", count, *unit == '\0' ? 0 : 1, unit);
}

std::string format_seconds(double seconds) {
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<Index>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  const Index minutes = (whole + 30) / 60;
  return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
}

ConsoleMode console_mode(Index rank) {
  if (rank != 0) return ConsoleMode::silent;
  return ::isatty(STDOUT_FILENO) == 1 ? ConsoleMode::bar : ConsoleMode::lines;
}

Console::Console(std::ostream& out, ConsoleMode mode, Index log_every)
    : out_(out), mode_(mode), log_every_(std::max<Index>(1, log_every)) {}

void Console::erase_bar() {
  if (bar_on_) out_ << "\r\x1b[K";
  bar_on_ = false;
}

void Console::print_line(const std::string& text) {
  if (mode_ == ConsoleMode::silent) return;
  erase_bar();
  out_ << printable_lines(text) << '\n' << std::flush;
}

std::string Console::time_left() const {
  return format_seconds(step_seconds_.value() * static_cast<double>(steps_ - last_.step - 1));
}

void Console::draw_bar() {
  if (mode_ != ConsoleMode::bar) return;
  const Index done = last_.step + 1;
  const Index filled = steps_ > 0 ? std::min(bar_width, bar_width * done / steps_) : bar_width;
  out_ << fmt::format("\r[{:=<{}}{:{}}] step {}/{}  loss {:.4f}  left {}\x1b[K", "", filled, "",
                      bar_width - filled, done, steps_, last_.loss, time_left())
       << std::flush;
  bar_on_ = true;
}

void Console::start(const StartRecord& record) {
  steps_ = record.steps;
  std::string versions;
  for (const auto& [name, version] : record.versions) {
    versions += fmt::format("{}{} {}", versions.empty() ? "" : ", ", name, version);
  }
  const std::set<std::string> nodes(record.hosts.begin(), record.hosts.end());
  print_line(versions);
  print_line(fmt::format("deck        {}", record.deck_file));
  print_line(fmt::format("grid        {} data x {} tensor ranks, {} threads each, on {} {}{}",
                         record.data_ranks, record.tensor_ranks, record.threads, nodes.size(),
                         nodes.size() == 1 ? "node " : "nodes, first ",
                         record.hosts.empty() ? "" : record.hosts.front()));
  print_line(fmt::format("model       {} parameters, {}, ZeRO stage {}",
                         format_count(static_cast<double>(record.parameters)), record.precision,
                         record.stage));
  print_line("memory      " + plan_line(record.planned_memory));
  print_line(
      fmt::format("steps       {} of {} tokens{}", record.steps,
                  format_count(static_cast<double>(record.tokens_per_step)),
                  record.first_step > 0 ? fmt::format(", going on at {}", record.first_step) : ""));
  print_line(data_lines(record.data));
  if (record.limit) print_line("limit       " + limit_line(*record.limit));
}

void Console::step(const StepRecord& record) {
  last_ = record;
  step_seconds_.add(record.seconds);
  if (record.skipped) ++skipped_;
  const Index done = record.step + 1;
  if (done % log_every_ == 0 || done == steps_ || record.skipped) {
    print_line(fmt::format(
        "step {:>{}}/{}  loss {:.4f}  norm {:.3f}  lr {:.2e}  {} tokens/s  MFU {:.1f} %  {}", done,
        fmt::formatted_size("{}", steps_), steps_, record.loss, record.grad_norm, record.lr,
        format_count(record.tokens_per_second), 100 * record.mfu,
        record.skipped
            ? fmt::format("skipped: gradients not finite, loss scale {}", record.loss_scale)
            : "left " + time_left()));
  }
  draw_bar();
}

void Console::validation(const ValidationRecord& record) {
  print_line(fmt::format("validation after {} steps: loss {:.4f} over {} tokens, {}", record.step,
                         record.loss, format_count(static_cast<double>(record.tokens)),
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
  if (!record.memory.empty()) print_line(memory_table(record.memory));
  if (!record.traffic.empty()) print_line(traffic_table(record.traffic));
  print_line(fmt::format("{} after {} of {} steps, {}{}", record.reason, record.steps, steps_,
                         format_seconds(record.seconds),
                         skipped_ > 0 ? fmt::format(", {} skipped", skipped_) : ""));
}

}  // namespace kzero::metrics

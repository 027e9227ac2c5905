#include "metrics/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace kzero::metrics {

namespace {

constexpr Index narrowest_bar = 10, widest_bar = 40;  // characters, without brackets
constexpr Index min_for_bar = 64;                     // columns: below, values are worth more

/// One field of a line; those with the highest `spare` are left out first.
struct Field {
  std::string text;
  int spare = 0;
};

std::string fit(std::vector<Field> fields, Index columns) {
  const auto joined = [&] {
    std::string line;
    for (const Field& field : fields) line += (line.empty() ? "" : "  ") + field.text;
    return line;
  };
  const auto room = static_cast<std::size_t>(std::max<Index>(0, columns));
  std::string line = joined();
  while (line.size() > room && fields.size() > 1) {
    fields.erase(std::max_element(fields.begin(), fields.end(),
                                  [](const auto& a, const auto& b) { return a.spare < b.spare; }));
    line = joined();
  }
  return line.substr(0, room);
}

/// Formats "3.0e-4": two digits, and no zeros in the exponent.
std::string short_exponent(double value) {
  std::string text = fmt::format("{:.1e}", value);
  const std::size_t exponent = text.find('e');
  if (exponent != std::string::npos && exponent + 2 < text.size() && text[exponent + 2] == '0')
    text.erase(exponent + 2, 1);
  return text;
}

/// Formats in 5 characters: "0.75", "123.4", "1.2e5".
std::string short_norm(double norm) {
  if (norm < 1000) return fmt::format("{:.{}f}", norm, norm < 99.995 ? 2 : 1);
  std::string text = short_exponent(norm);
  std::erase(text, '+');
  return text;
}

/// Formats five digits in 6 characters: "3.0134", "10.988", "131.07".
std::string short_loss(double loss) {
  const int decimals = loss < 9.99995 ? 4 : loss < 99.9995 ? 3 : 2;
  return fmt::format("{:6.{}f}", loss, decimals);
}

/// Every field has a fixed width, so that lines of different steps have the same columns.
std::vector<Field> values_of(const Progress& progress) {
  std::vector<Field> fields{
      {"loss " + short_loss(progress.loss), 1},
      {fmt::format("norm {:>5}", short_norm(progress.last.grad_norm)), 5},
      {fmt::format("lr {:>6}", short_exponent(progress.last.lr)), 4},
      {fmt::format("{:>7} tok/s", format_count(progress.tokens_per_second)), 3}};
  if (const auto targets = progress.last.targets)
    fields.push_back(
        {fmt::format("{:>7} targets", format_count(static_cast<double>(*targets))), 7});
  return fields;
}

Field left_field(const Progress& progress) {
  return {fmt::format("left {:<6}", format_short_seconds(progress.seconds_left)), 2};
}

}  // namespace

std::string step_line(const Progress& progress, Index columns) {
  const Index done = progress.last.step + 1;
  const Field where{fmt::format("step {:>{}}/{}", done, fmt::formatted_size("{}", progress.steps),
                                progress.steps)};
  if (progress.last.targets == 0) return fit({where, {"skipped: no targets", 1}}, columns);
  const auto limit = progress.last.norm_limit;
  if (progress.last.skipped && limit && std::isfinite(progress.last.grad_norm)) {
    return fit({where,
                {fmt::format("skipped: norm {} is above {:.4g}",
                             short_norm(progress.last.grad_norm), *limit),
                 1}},
               columns);
  }
  if (progress.last.skipped) {
    return fit({where,
                {"skipped: gradients not finite", 1},
                {fmt::format("loss scale {}", progress.last.loss_scale), 2}},
               columns);
  }
  std::vector<Field> fields = values_of(progress);
  fields.insert(fields.begin(), where);
  fields.push_back(left_field(progress));
  const std::string line = fit(std::move(fields), columns);
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

std::string live_line(const Progress& progress, Index columns) {
  const Index done = progress.last.step + 1;
  std::vector<Field> fields = values_of(progress);
  fields.insert(fields.begin(), {fmt::format("{}/{}", done, progress.steps)});
  fields.push_back({fmt::format("MFU {:3.0f} %", 100 * progress.mfu), 6});
  fields.push_back(left_field(progress));
  const bool has_bar = columns >= min_for_bar;
  std::string line = fit(std::move(fields), columns - (has_bar ? narrowest_bar + 3 : 0));
  if (!has_bar) return line;
  const Index room = columns - static_cast<Index>(line.size()) - 3;
  const Index width = std::min(room, widest_bar);
  const Index filled = progress.steps > 0 ? std::min(width, width * done / progress.steps) : width;
  return fmt::format("[{:=<{}}{:{}}] {}", "", filled, "", width - filled, line);
}

std::string format_count(double count) {
  constexpr double max_digits = 10000;  // smaller counts are printed in full
  constexpr double next_unit = 999.95;  // with one digit after the point this would be 1000.0
  if (std::abs(count) < max_digits) return fmt::format("{:.0f}", count);
  const char* unit = "";
  for (const char* next : {"k", "M", "G", "T"}) {
    count /= 1000;
    unit = next;
    if (std::abs(count) < next_unit) break;
  }
  return fmt::format("{:.1f} {}", count, unit);
}

std::string format_seconds(double seconds) {
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<Index>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  const Index minutes = (whole + 30) / 60;
  return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
}

std::string format_short_seconds(double seconds) {
  const auto whole = static_cast<Index>(std::llround(seconds));
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  const Index minutes = (whole + 30) / 60;
  if (minutes < 100 * 60) return fmt::format("{}h{:02}m", minutes / 60, minutes % 60);
  const Index hours = (minutes + 30) / 60;
  return fmt::format("{}d{:02}h", hours / 24, hours % 24);
}

}  // namespace kzero::metrics

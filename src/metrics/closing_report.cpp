#include "metrics/closing_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.hpp"

namespace kzero::metrics {

namespace {

bool differs(const CategoryBytes& category) {
  return category.peak_bytes != category.planned_bytes;
}

bool differs(const TrafficRow& row) {
  return row.elements_per_step != row.expected_elements_per_step ||
         row.bytes_between_nodes_per_step != row.expected_bytes_between_nodes_per_step;
}

const MemoryRow& fullest(const std::vector<MemoryRow>& rows) {
  return *std::ranges::max_element(rows, {}, [](const MemoryRow& row) {
    return total_bytes(row.categories, &CategoryBytes::peak_bytes);
  });
}

const MemoryRow& max_resident(const std::vector<MemoryRow>& rows) {
  return *std::ranges::max_element(rows, {}, &MemoryRow::resident_peak_bytes);
}

std::string memory_table(const MemoryRow& shown, const MemoryRow& resident) {
  const auto line = [](const std::string& name, Index planned, Index peak) {
    return fmt::format("\n  {:<14}{:>14}{:>14}{}", name, format_bytes(planned), format_bytes(peak),
                       planned == peak ? "" : "  differs from the plan");
  };
  std::string text = fmt::format("{:<16}{:>14}{:>14}", fmt::format("memory of rank {}", shown.rank),
                                 "planned", "peak");
  for (const CategoryBytes& category : shown.categories) {
    if (category.planned_bytes == 0 && category.peak_bytes == 0) continue;
    text += line(category.name, category.planned_bytes, category.peak_bytes);
  }
  text += line("sum", total_bytes(shown.categories, &CategoryBytes::planned_bytes),
               total_bytes(shown.categories, &CategoryBytes::peak_bytes));
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

Index total_bytes(const std::vector<CategoryBytes>& categories, Index CategoryBytes::*which) {
  Index total = 0;
  for (const CategoryBytes& category : categories) total += category.*which;
  return total;
}

std::string memory_report(const std::vector<MemoryRow>& rows, Detail detail) {
  const MemoryRow& resident = max_resident(rows);
  for (const MemoryRow& row : rows) {
    const auto found = std::ranges::find_if(
        row.categories, [](const CategoryBytes& category) { return differs(category); });
    if (found == row.categories.end()) continue;
    return fmt::format("warning     memory of rank {} differs from the plan: {}\n{}", row.rank,
                       found->name, memory_table(row, resident));
  }
  const MemoryRow& fullest_row = fullest(rows);
  if (detail == Detail::tables) return memory_table(fullest_row, resident);
  return fmt::format("memory      used = planned, {} a rank; resident at most {}",
                     format_bytes(total_bytes(fullest_row.categories, &CategoryBytes::peak_bytes)),
                     format_bytes(resident.resident_peak_bytes));
}

std::string traffic_report(const std::vector<TrafficRow>& rows, Detail detail) {
  const auto found = std::ranges::find_if(rows, [](const TrafficRow& row) { return differs(row); });
  if (found != rows.end())
    return fmt::format("warning     traffic is not as expected: {} of {} over {}\n{}",
                       found->operation, found->purpose, found->group, traffic_table(rows));
  if (detail == Detail::tables) return traffic_table(rows);
  Index bytes = 0, between_nodes = 0;
  for (const TrafficRow& row : rows) {
    bytes += row.bytes_per_step;
    between_nodes += row.bytes_between_nodes_per_step;
  }
  return fmt::format(
      "traffic     counted = expected, {} sent a step and rank{}", format_bytes(bytes),
      between_nodes > 0 ? fmt::format(", {} leave the node", format_bytes(between_nodes)) : "");
}

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

}  // namespace kzero::metrics

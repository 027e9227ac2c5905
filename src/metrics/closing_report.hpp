// What a run reports at its end of memory and traffic: used compared with planned, counted compared
// with expected. Each is one line if they agree and nobody asks for more, otherwise a table.
#pragma once

#include <string>
#include <vector>

#include "metrics/records.hpp"

namespace kzero::metrics {

enum class Detail {
  brief,   // one line if everything agrees
  tables,  // always the tables
};

/// Adds up one kind of bytes of all categories.
Index total_bytes(const std::vector<CategoryBytes>& categories, Index CategoryBytes::*which);

/// Formats the memory of all ranks, of which there is at least one. If a category of any rank
/// differs from its plan, the text is a warning with the table of that rank, in both details.
/// Otherwise the table is that of the rank that used most. Without a line end.
std::string memory_report(const std::vector<MemoryRow>& rows, Detail detail);

/// Formats the counted traffic of steps, at least one row. If a row differs from what is expected,
/// the text is a warning with the table, in both details. Without a line end.
std::string traffic_report(const std::vector<TrafficRow>& rows, Detail detail);

/// Formats what one rank sends per step: elements, expected traffic and bytes of each row, under a
/// heading. Without a line end.
std::string traffic_table(const std::vector<TrafficRow>& rows);

}  // namespace kzero::metrics

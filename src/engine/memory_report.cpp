#include "engine/memory_report.hpp"

#include <algorithm>
#include <sstream>

#include "metrics/meters.hpp"

namespace kzero::engine {

namespace {

/// Readers of records expect eight categories, so the ninth appears only if it is in use.
void drop_empty_offload(std::vector<metrics::CategoryBytes>& rows) {
  std::erase_if(rows, [](const metrics::CategoryBytes& row) {
    return row.name == name_of(memory::Category::offloaded) && row.planned_bytes == 0 &&
           row.peak_bytes == 0;
  });
}

}  // namespace

std::vector<metrics::CategoryBytes> categories(const memory::Bytes& planned,
                                               const memory::Bytes& peak) {
  std::vector<metrics::CategoryBytes> rows;
  for (std::size_t i = 0; i < memory::category_count; ++i) {
    rows.push_back({std::string(memory::category_names[i]), planned[i], peak[i]});
  }
  drop_empty_offload(rows);
  return rows;
}

std::vector<metrics::MemoryRow> memory_rows(const grid::Group& world, const memory::Bytes& planned,
                                            const memory::Bytes& peak, Index resident_at_start) {
  std::ostringstream mine;
  mine << metrics::resident_peak_bytes() << ' ' << resident_at_start;
  for (std::size_t i = 0; i < memory::category_count; ++i)
    mine << ' ' << planned[i] << ' ' << peak[i];
  std::vector<metrics::MemoryRow> rows;
  for (const std::string& text : world.gather(mine.str())) {
    std::istringstream in(text);
    metrics::MemoryRow row;
    row.rank = static_cast<Index>(rows.size());
    in >> row.resident_peak_bytes >> row.resident_start_bytes;
    for (const std::string_view name : memory::category_names) {
      metrics::CategoryBytes& bytes = row.categories.emplace_back();
      bytes.name = name;
      in >> bytes.planned_bytes >> bytes.peak_bytes;
    }
    drop_empty_offload(row.categories);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace kzero::engine

#include "checkpoint/format/norm_record.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "storage/hdf5_file.hpp"

namespace kzero::checkpoint {

namespace {

constexpr const char* norm_group = "/norms";

}  // namespace

void put_norms(storage::Hdf5File& file, const std::optional<NormRecord>& record) {
  if (!record) return;
  const auto count = static_cast<Index>(record->norms.size());
  file.set_attribute("/", "norm_record", count);
  file.create_group(norm_group);
  file.set_attribute(norm_group, "skipped", record->skipped);
  file.set_attribute(norm_group, "skipped_in_row", record->skipped_in_row);
  if (count > 0) file.write("/norms/applied", std::span<const double>(record->norms), {count});
}

std::optional<NormRecord> get_norms(const storage::Hdf5File& file, Index skipped, Index in_row,
                                    const std::filesystem::path& path) {
  if (!file.has_attribute("/", "norm_record")) return std::nullopt;
  NormRecord record;
  if (file.attribute<Index>("/", "norm_record") > 0)
    record.norms = file.read<double>("/norms/applied");
  record.skipped = file.attribute<Index>(norm_group, "skipped");
  record.skipped_in_row = file.attribute<Index>(norm_group, "skipped_in_row");
  const bool are_norms = std::ranges::all_of(
      record.norms, [](double norm) { return std::isfinite(norm) && norm >= 0; });
  KZERO_REQUIRE(are_norms && record.skipped_in_row >= 0 &&
                    record.skipped_in_row <= record.skipped && record.skipped <= skipped &&
                    record.skipped_in_row <= in_row,
                ExitCode::files,
                "{}: its record of gradient norms is impossible: {} norms, {} steps skipped for "
                "theirs, {} of them in a row",
                path.string(), record.norms.size(), record.skipped, record.skipped_in_row);
  return record;
}

}  // namespace kzero::checkpoint

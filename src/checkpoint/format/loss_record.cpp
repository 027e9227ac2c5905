#include "checkpoint/format/loss_record.hpp"

#include <cmath>

#include "base/error.hpp"
#include "storage/hdf5_file.hpp"

namespace kzero::checkpoint {

namespace {

constexpr const char* loss_group = "/loss";

/// Calls f(attribute, value) for every value of a record. Reading and writing share this list.
template <class Record, class F>
void for_each_value(Record& record, F&& f) {
  f("last", record.last);
  f("included", record.included);
  f("mean", record.mean);
  f("change", record.change);
  f("lowest", record.lowest);
  f("counted", record.counted);
  f("sane_step", record.sane_step);
}

}  // namespace

void put_loss(storage::Hdf5File& file, const std::optional<LossRecord>& record) {
  if (!record) return;
  file.set_attribute("/", "loss_record", Index{1});
  file.create_group(loss_group);
  for_each_value(*record, [&](const char* name, const auto& value) {
    file.set_attribute(loss_group, name, value);
  });
}

std::optional<LossRecord> get_loss(const storage::Hdf5File& file, Index steps,
                                   const std::filesystem::path& path) {
  if (!file.has_attribute("/", "loss_record")) return std::nullopt;
  LossRecord record;
  for_each_value(record, [&](const char* name, auto& value) {
    value = file.attribute<std::remove_reference_t<decltype(value)>>(loss_group, name);
  });
  const bool is_finite = std::isfinite(record.included) && std::isfinite(record.mean) &&
                         std::isfinite(record.change) && std::isfinite(record.lowest);
  KZERO_REQUIRE(is_finite && record.counted >= 0 && record.counted <= steps &&
                    record.sane_step >= -1 && record.sane_step < steps,
                ExitCode::files,
                "{}: its record of losses is impossible: {} of {} steps, the last of them number "
                "{}",
                path.string(), record.counted, steps, record.sane_step);
  return record;
}

}  // namespace kzero::checkpoint

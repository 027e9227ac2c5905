#include "plan/host_copies.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace kzero::plan {

double copy_seconds(const StepOutline& outline, const HostRates& host) {
  if (!host.known()) return 0;
  double bytes = 2 * outline.host_update.bytes;
  for (const OutlinedOperation& operation : outline.operations)
    bytes += static_cast<double>(outline.rounds) * operation.kept_bytes;
  return bytes / host.copied_bytes;
}

double HostCopies::update(Index unit, double seconds) {
  const HostUpdate& copied = outline_.host_update;
  const double bytes = copied.bytes * outline_.updates[unit];
  if (!rates_.known() || bytes == 0) {
    rank_.work(seconds, "update", unit);
    return 0;
  }
  const auto parts = static_cast<Index>(std::ceil(bytes / copied.part_bytes));
  const double part_bytes = bytes / static_cast<double>(parts);
  double arriving = begin(part_bytes, "copy of gradients", unit);
  std::array<double, 2> leaving{};  // from the two buffers
  for (Index part = 0; part < parts; ++part) {
    const double arrived = arriving;
    if (part + 1 < parts) arriving = begin(part_bytes, "copy of gradients", unit);
    rank_.wait(std::max(arrived, leaving[part % 2]), Cause::copies);
    rank_.work(seconds / static_cast<double>(parts), "update", unit);
    leaving[part % 2] = begin(part_bytes, "copy of updated parameters", unit);
  }
  return std::max(leaving[0], leaving[1]);
}

void HostCopies::copy_kept(const OutlinedOperation& operation) {
  if (operation.kept_bytes == 0 || !rates_.known()) return;
  const Index unit = operation.unit;
  if (operation.pass == param::Pass::forward) {
    arriving_unit_ = -1;
    // The block overwrites the input of the block before.
    rank_.wait(leaving_input_, Cause::copies);
    leaving_input_ = begin(operation.kept_bytes, "copy of a kept input", unit);
    return;
  }
  if (arriving_unit_ != unit) fetch_kept(operation.kept_bytes, unit);
  rank_.wait(arriving_input_, Cause::copies);
  if (operation.has_kept_before) fetch_kept(operation.kept_bytes, unit - 1);
}

double HostCopies::begin(double bytes, std::string_view name, Index unit) {
  return rank_.begin(
      LinkUse::of(Link::host, bytes / rates_.copied_bytes),
      {.stream = Stream::copies, .cause = Cause::copies, .name = name, .unit = unit});
}

void HostCopies::fetch_kept(double bytes, Index unit) {
  arriving_input_ = begin(bytes, "return of a kept input", unit);
  arriving_unit_ = unit;
}

}  // namespace kzero::plan

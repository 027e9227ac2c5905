#include "comm/shared_device.hpp"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "runtime/execution.hpp"
#include "runtime/host_name.hpp"

namespace kzero::comm {

namespace {

std::string first_shared(const std::vector<std::string>& devices) {
  std::map<std::string, int> owners;
  int rank = 0;
  for (const std::string& device : devices) {
    const auto [owner, is_new] = owners.emplace(device, rank);
    if (!is_new) return fmt::format("ranks {} and {} share {}", owner->second, rank, device);
    ++rank;
  }
  return {};
}

}  // namespace

std::string shared_device(const grid::Group& group) {
  const std::string mine = runtime::device_name();
  if (mine.empty()) return {};  // on all ranks alike: the back end cannot tell
  const auto devices = group.gather(mine + " of " + runtime::host_name());
  return group.broadcast(first_shared(devices));
}

}  // namespace kzero::comm

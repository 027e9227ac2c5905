#include "comm/shared_device.hpp"

#include <fmt/format.h>

#include <cstdlib>
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

/// Returns the name that NCCL knows this rank's host by. NCCL compares it and the device to find
/// ranks that share a device. It therefore accepts ranks on one device whose NCCL_HOSTID differ.
std::string host_of_nccl() {
  const char* const id = std::getenv("NCCL_HOSTID");
  return id ? id : runtime::host_name();
}

}  // namespace

std::string shared_device(const grid::Group& group) {
  const std::string mine = runtime::device_name();
  if (mine.empty()) return {};  // on all ranks alike: the back end cannot tell
  const auto devices = group.gather(mine + " of " + host_of_nccl());
  return group.broadcast(first_shared(devices));
}

}  // namespace kzero::comm

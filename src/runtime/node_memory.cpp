#include "runtime/node_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

#include "base/bytes.hpp"
#include "runtime/host_name.hpp"

namespace kzero::runtime {

namespace {

namespace fs = std::filesystem;

constexpr Index unlimited = std::numeric_limits<Index>::max();

Index kernel_available(const fs::path& proc) {
  std::ifstream file(proc / "meminfo");
  for (std::string key, unit; file >> key;) {
    Index kibibytes = 0;
    file >> kibibytes;
    std::getline(file, unit);
    if (key == "MemAvailable:") return kibibytes * 1024;
  }
  return unlimited;
}

/// The names of one version of control groups for the values that are read here.
struct Version {
  fs::path root;                    // mount point of its groups
  std::vector<const char*> limits;  // the smallest applies
  const char* used;
  std::vector<const char*>
      reclaimable;  // in memory.stat: file cache of a group and its descendants
};

/// Reads a number from a control group's file; "max" and a missing file mean no limit.
Index read_number(const fs::path& path) {
  std::ifstream file(path);
  Index value = 0;
  return file >> value ? value : unlimited;
}

/// File cache is charged to the group that read the file first and is reclaimed under pressure. If
/// it counted as used, a run could be refused because of data that was staged before it.
Index reclaimable_bytes(const fs::path& group, const Version& version) {
  std::ifstream file(group / "memory.stat");
  Index sum = 0, value = 0;
  for (std::string key; file >> key >> value;) {
    if (std::ranges::find(version.reclaimable, key) != version.reclaimable.end()) sum += value;
  }
  return sum;
}

AvailableMemory group_left(const fs::path& group, const Version& version) {
  AvailableMemory left{unlimited};
  for (const char* name : version.limits) {
    const Index limit = read_number(group / name);
    if (limit < left.bytes) left = {limit, (group / name).string()};
  }
  const Index used = read_number(group / version.used);
  if (left.bytes == unlimited || used == unlimited) return left;
  const Index held = std::max<Index>(0, used - reclaimable_bytes(group, version));
  left.bytes = std::max<Index>(0, left.bytes - held);
  return left;
}

/// The smallest remainder of a group and of all groups that contain it. A container may list groups
/// by paths that it cannot see; those levels are skipped and set no limit.
AvailableMemory min_left(const Version& version, fs::path group) {
  AvailableMemory smallest{unlimited};
  for (group = group.relative_path();; group = group.parent_path()) {
    const AvailableMemory left = group_left(version.root / group, version);
    if (left.bytes < smallest.bytes) smallest = left;
    if (group.empty()) return smallest;
  }
}

}  // namespace

AvailableMemory available_memory(const KernelFolders& folders) {
  const fs::path cgroup = folders.cgroup;
  const Version one{cgroup / "memory",
                    {"memory.limit_in_bytes"},
                    "memory.usage_in_bytes",
                    {"total_inactive_file", "total_active_file"}};
  // Above memory.high the kernel kills nothing, but it throttles every new page until the run makes
  // no progress.
  const Version two{
      cgroup, {"memory.max", "memory.high"}, "memory.current", {"inactive_file", "active_file"}};
  AvailableMemory smallest{kernel_available(folders.proc)};
  std::ifstream groups(fs::path(folders.proc) / "self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:memory:/path", "0::/path"
    const std::size_t names = line.find(':') + 1, path = line.find(':', names) + 1;
    if (names == 0 || path == 0) continue;
    const std::string controllers = fmt::format(",{},", line.substr(names, path - 1 - names));
    const bool is_two = line.starts_with("0::");
    if (!is_two && controllers.find(",memory,") == std::string::npos) continue;
    const AvailableMemory left = min_left(is_two ? two : one, line.substr(path));
    if (left.bytes < smallest.bytes) smallest = left;
  }
  return smallest;
}

std::string memory_shortage(Index bytes, Index node_ranks) {
  const AvailableMemory available = available_memory();
  if (bytes <= available.bytes / node_ranks) return {};
  return fmt::format("node {} has {} left for {} {}{}", host_name(), format_bytes(available.bytes),
                     node_ranks, node_ranks == 1 ? "rank" : "ranks",
                     available.limit.empty() ? "" : ", by the job's limit in " + available.limit);
}

}  // namespace kzero::runtime

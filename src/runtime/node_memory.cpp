#include "runtime/node_memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace kzero::runtime {

namespace {

constexpr Index unlimited = std::numeric_limits<Index>::max();

Index kernel_available() {
  std::ifstream file("/proc/meminfo");
  for (std::string key, unit; file >> key;) {
    Index kibibytes = 0;
    file >> kibibytes;
    std::getline(file, unit);
    if (key == "MemAvailable:") return kibibytes * 1024;
  }
  return unlimited;
}

/// A number in a control group's file; "max" and a missing file are no limit.
Index read_number(const char* path) {
  std::ifstream file(path);
  Index value = 0;
  return file >> value ? value : unlimited;
}

Index group_left() {
  const Index limit = read_number("/sys/fs/cgroup/memory.max");
  if (limit == unlimited) return unlimited;
  const Index used = read_number("/sys/fs/cgroup/memory.current");
  return used == unlimited ? limit : std::max<Index>(0, limit - used);
}

}  // namespace

Index available_memory_bytes() { return std::min(kernel_available(), group_left()); }

}  // namespace kzero::runtime

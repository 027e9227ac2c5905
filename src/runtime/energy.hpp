// The energy that this node or a device has used, from counters that the system offers. Whoever
// adds several up must count each once: all ranks of a node find the same counters.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

namespace kzero::runtime {

class EnergyCounter {
 public:
  EnergyCounter() = default;
  virtual ~EnergyCounter() = default;
  EnergyCounter(const EnergyCounter&) = delete;
  EnergyCounter& operator=(const EnergyCounter&) = delete;

  /// Joules since construction; NaN from the first failed reading on.
  virtual double joules() = 0;
};

/// A counter, or the reason why there is none.
struct FoundCounter {
  std::unique_ptr<EnergyCounter> counter{};
  std::string source{};   // "pm_counters", "RAPL" or "NVML"
  std::string problem{};  // without a counter: the file or library, and what is wrong with it
};

/// Returns whether a node has Cray's counters, which include its devices.
bool counts_devices(const std::filesystem::path& system = "/sys");

/// Opens the counters of this node: Cray's pm_counters for all of it, or else RAPL's for its
/// processor packages, and for memory where that has a counter of its own. RAPL's overflow within
/// minutes, so a thread reads them every `longest_gap`. `system` is where sysfs is. Throws nothing
/// for counters that cannot be read.
FoundCounter node_energy(const std::filesystem::path& system = "/sys",
                         std::chrono::milliseconds longest_gap = std::chrono::seconds(10));

/// Opens the counter of an NVIDIA device by its PCI address, "0000:18:00.0". Loads NVML, which
/// comes with the driver. The counter is that of the full device, also for a MIG instance.
FoundCounter device_energy(const std::string& address,
                           const std::string& library = "libnvidia-ml.so.1");

}  // namespace kzero::runtime

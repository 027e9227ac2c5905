// The energy of a run, summed over its nodes and devices. Each node and each device is read by one
// rank, however many ranks share it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "grid/group.hpp"
#include "metrics/records.hpp"
#include "runtime/energy.hpp"

namespace kzero::run {

/// Where a rank runs, and where the counters of that place are.
struct EnergyPlace {
  std::string host{};    // for people
  std::string node{};    // the same for the ranks on one kernel, and for no others
  std::string device{};  // PCI address of the rank's device; empty: it computes on the host
  std::filesystem::path system = "/sys";
  std::string nvml = "libnvidia-ml.so.1";
};

/// The place of this process.
EnergyPlace this_energy_place();

class EnergyMeter {
 public:
  /// Opens the counters that this rank reads; those of a device only if its node has no counter
  /// that includes devices. Energy counts from here on. Collective over `world`, which must outlive
  /// the object.
  explicit EnergyMeter(const grid::Group& world, const EnergyPlace& place = this_energy_place());

  /// Whether any rank has a counter. The same on every rank.
  bool is_on() const { return is_on_; }

  /// On the root, a line that names what is not measured, and why; empty if everything is. Empty on
  /// the other ranks.
  const std::string& note() const { return note_; }

  /// Joules from the counters of this rank since the last call, or since construction; NaN if one
  /// can no longer be read, 0 for a rank without counters. Not collective.
  double take();

  /// The energy of all ranks since construction, in which this job trained on `tokens` tokens and
  /// `seconds` have passed; nullopt if nothing is measured. Collective over `world`.
  std::optional<metrics::EnergyRecord> total(double tokens, double seconds);

 private:
  void note_missing(const std::vector<std::string>& of_nodes,
                    const std::vector<std::string>& of_devices);

  const grid::Group& world_;
  bool is_on_ = false;
  std::string note_;
  runtime::FoundCounter node_, device_;  // this rank's
  metrics::EnergyRecord record_;         // on the root: what is measured
  double taken_ = 0;
};

}  // namespace kzero::run

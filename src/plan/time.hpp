// Estimates the time of a step from the work and the rates of a rank:
//
//   seconds = (model operations + recomputed operations + matrix operations) / operation rate
//             + (recomputed bytes + optimizer bytes) / memory rate + bytes sent / message rate
//
// step_time.hpp subtracts the messages that overlap. Waiting for slower ranks is ignored.
// docs/results.md compares estimates with measurements.
#pragma once

#include <array>
#include <cstddef>
#include <numeric>
#include <string_view>

namespace kzero::plan {

/// The work of one rank per step.
struct Work {
  double operations = 0;             // of the model, as counted by MFU
  double recomputed_operations = 0;  // of recomputed blocks, not counted by MFU
  double recomputed_bytes = 0;       // read and written if recomputation covers less than a block
  double offloaded_bytes = 0;        // of kept inputs, to the host and back, read and written
  double optimizer_bytes = 0;        // read and written by the update
  bool updates_on_host = false;      // a device's optimizer state is in host memory
  double matrix_operations = 0;      // of the optimizer on full matrices
  double sent_bytes = 0;
};

/// How a rank on a device uses its host, per second. 0: not known.
struct HostRates {
  double copied_bytes = 0;  // between device and host
  double memory_bytes = 0;  // of host memory, read plus written by the rank's cores

  bool known() const { return copied_bytes > 0; }
};

/// The rates of one rank, per second.
struct Rates {
  double operations = 0;
  double memory_bytes = 0;  // read plus written
  double sent_bytes = 0;
  HostRates host{};
};

/// The messages that a rank waits for.
enum class Cause {
  gathers,      // of parameters, before an operation
  sums,         // of gradients
  updates,      // of updated parameters, after the optimizer or before an operation
  activations,  // of a tensor group
  matrices,     // of the optimizer
  copies        // between device and host
};

constexpr std::array all_causes{Cause::gathers,     Cause::sums,     Cause::updates,
                                Cause::activations, Cause::matrices, Cause::copies};

constexpr std::string_view name_of(Cause cause) {
  constexpr std::string_view names[] = {
      "gathers of parameters",         "sums of gradients",
      "gathers of updated parameters", "activations of tensor groups",
      "matrices of the optimizer",     "copies between device and host"};
  return names[static_cast<int>(cause)];
}

/// The seconds of a step in which a rank computes nothing, by what it waits for.
class Waits {
 public:
  double& operator[](Cause cause) { return seconds_[static_cast<std::size_t>(cause)]; }
  double operator[](Cause cause) const { return seconds_[static_cast<std::size_t>(cause)]; }

  double sum() const { return std::accumulate(seconds_.begin(), seconds_.end(), 0.0); }

 private:
  std::array<double, all_causes.size()> seconds_{};
};

/// The seconds of a step.
struct Estimate {
  Rates rates;
  double model = 0, recompute = 0, optimizer = 0;
  double matrices = 0;    // of the optimizer's seconds
  double messages = 0;    // as if nothing overlapped
  double copies = 0;      // between device and host, as if nothing overlapped
  double overlapped = 0;  // of the messages' and copies' seconds, in which the rank computes
  Waits waits{};          // the other seconds of the messages and copies

  double seconds() const { return model + recompute + optimizer + messages + copies - overlapped; }
};

Estimate estimate(const Work& work, const Rates& rates);

}  // namespace kzero::plan

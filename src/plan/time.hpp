// Estimates the time of a step from the work and the rates of a rank:
//
//   seconds = (model operations + recomputed operations + matrix operations) / operation rate
//             + (recomputed bytes + optimizer bytes) / memory rate + bytes sent / message rate
//
// step_time.hpp subtracts the messages that overlap. Waiting for slower ranks and oversubscribed
// cores are ignored. docs/results.md compares estimates with measurements.
#pragma once

#include <string_view>
#include <utility>

namespace kzero::plan {

/// The work of one rank per step.
struct Work {
  double operations = 0;             // of the model, as counted by MFU
  double recomputed_operations = 0;  // of recomputed blocks, not counted by MFU
  double recomputed_bytes = 0;       // read and written if recomputation covers less than a block
  double optimizer_bytes = 0;        // read and written by the update
  double matrix_operations = 0;      // of the optimizer on full matrices
  double sent_bytes = 0;
};

/// The rates of one rank, per second.
struct Rates {
  double operations = 0;
  double memory_bytes = 0;  // read plus written
  double sent_bytes = 0;
};

/// The seconds of a step in which a rank computes nothing, by the messages that it waits for.
struct Waits {
  double gathers = 0;      // of parameters, before an operation
  double sums = 0;         // of gradients
  double updates = 0;      // of updated parameters, after the optimizer or before an operation
  double activations = 0;  // of a tensor group
  double matrices = 0;     // of the optimizer

  double sum() const { return gathers + sums + updates + activations + matrices; }
};

constexpr std::pair<double Waits::*, std::string_view> wait_causes[] = {
    {&Waits::gathers, "gathers of parameters"},
    {&Waits::sums, "sums of gradients"},
    {&Waits::updates, "gathers of updated parameters"},
    {&Waits::activations, "activations of tensor groups"},
    {&Waits::matrices, "matrices of the optimizer"}};

constexpr std::string_view name_of(double Waits::*cause) {
  for (const auto& [known, name] : wait_causes)
    if (known == cause) return name;
  return "";
}

/// The seconds of a step.
struct Estimate {
  Rates rates;
  double model = 0, recompute = 0, optimizer = 0;
  double matrices = 0;    // of the optimizer's seconds
  double messages = 0;    // as if nothing overlapped
  double overlapped = 0;  // of the messages' seconds, in which the rank computes
  Waits waits{};          // the other seconds of the messages

  double seconds() const { return model + recompute + optimizer + messages - overlapped; }
};

Estimate estimate(const Work& work, const Rates& rates);

}  // namespace kzero::plan

// Estimates the time of a step from the work and the rates of a rank:
//
//   seconds = (model operations + recomputed operations + matrix operations) / operation rate
//             + (recomputed bytes + optimizer bytes) / memory rate + bytes sent / message rate
//
// step_time.hpp subtracts the messages that overlap. Waiting for slower ranks and oversubscribed
// cores are ignored. docs/results.md compares estimates with measurements.
#pragma once

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

/// The seconds of a step.
struct Estimate {
  Rates rates;
  double model = 0, recompute = 0, optimizer = 0;
  double matrices = 0;    // of the optimizer's seconds
  double messages = 0;    // as if nothing overlapped
  double overlapped = 0;  // of the messages' seconds, in which the rank computes

  double seconds() const { return model + recompute + optimizer + messages - overlapped; }
};

Estimate estimate(const Work& work, const Rates& rates);

}  // namespace kzero::plan

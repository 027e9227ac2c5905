// Estimates the time of a step from the work of a rank and its rates:
//
//   seconds = (operations + those recomputed + those of matrices) / their rate
//             + (recomputed bytes + optimizer bytes) / rate of memory + bytes sent / rate of
//             messages
//
// The parts add up, as a step does them one after the other. Left out: the latency of messages,
// waiting for slower ranks, and oversubscribed cores. docs/planning.md compares the estimate with
// measured steps.
#pragma once

namespace kzero::plan {

/// The work of one rank in one step.
struct Work {
  double operations = 0;             // of the model, as MFU counts them
  double recomputed_operations = 0;  // of recomputed blocks, which MFU does not count
  double recomputed_bytes = 0;       // read and written if less than a block is recomputed
  double optimizer_bytes = 0;        // read and written by the update
  double matrix_operations = 0;      // of the optimizer on whole matrices
  double sent_bytes = 0;
};

/// The rates of one rank, per second.
struct Rates {
  double operations = 0;
  double memory_bytes = 0;  // read plus written
  double sent_bytes = 0;
};

struct Estimate {
  Rates rates;
  double model = 0, recompute = 0, optimizer = 0, messages = 0;  // seconds

  double seconds() const { return model + recompute + optimizer + messages; }
};

Estimate estimate(const Work& work, const Rates& rates);

}  // namespace kzero::plan

// How long a step should take, from what a rank does in it and how fast it does that:
//
//   seconds = (operations + those recomputed) / their rate
//             + (recomputed bytes + optimizer bytes) / rate of memory + bytes sent / rate of
//             messages
//
// One after the other, as a step does them. Left out: the latency of messages, waiting for slower
// ranks, and ranks that have to share cores. docs/planning.md compares it with measured steps.
#pragma once

#include "deck/config.hpp"
#include "memory/ledger.hpp"
#include "train/blueprint.hpp"

namespace kzero::plan {

/// What one rank does in one step.
struct Work {
  double operations = 0;             // of the model, as MFU counts them
  double recomputed_operations = 0;  // of blocks run again in backward, which MFU does not count
  double recomputed_bytes = 0;       // read and written where less than a block is run again
  double optimizer_bytes = 0;        // read and written by the update
  double sent_bytes = 0;
};

/// What one rank reaches, a second.
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

/// Of a resolved deck and its blueprint. `held` are the planned bytes of a rank, which say how much
/// of the optimizer state is its own.
Work work_of_step(const deck::Config& config, const train::Blueprint& blueprint,
                  const memory::Bytes& held, Index sent_bytes);

Estimate estimate(const Work& work, const Rates& rates);

}  // namespace kzero::plan

// The reports of a run as plain values: one struct per event of the metrics file. The console
// prints the same values, so people and programs read the same numbers. They are independent of
// their source.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/types.hpp"
#include "metrics/data_summary.hpp"
#include "metrics/expert_load.hpp"

namespace kzero::metrics {

/// One category of memory on one rank: parameters, gradients, optimizer, activations, recompute,
/// buckets, workspace or io.
struct CategoryBytes {
  std::string name{};
  Index planned_bytes = 0;
  Index peak_bytes = 0;  // 0 in a plan
};

struct MemoryRow {
  Index rank = 0;
  Index resident_peak_bytes = 0;   // of the full process, including memory of no category
  Index resident_start_bytes = 0;  // before the categories' memory was allocated
  std::vector<CategoryBytes> categories{};
};

/// The peak bytes of the process beyond its categories: code, libraries, their scratch memory.
inline Index unplanned_bytes(const MemoryRow& row) {
  Index rest = row.resident_peak_bytes;
  for (const CategoryBytes& category : row.categories) rest -= category.peak_bytes;
  return rest;
}

/// The elements and bytes that one rank sends in one step for one purpose.
struct TrafficRow {
  std::string group{};      // data, tensor, ...
  std::string operation{};  // reduce_scatter, all_gather, ...
  std::string purpose{};    // gradients, parameters, activations, ...
  Index elements_per_step = 0;
  Index bytes_per_step = 0;
  Index expected_elements_per_step = 0;
  Index expected_bytes_per_step = 0;
  Index bytes_between_nodes_per_step = 0;
  Index expected_bytes_between_nodes_per_step = 0;
};

/// The time by which the job must end, and how long before that the run stops.
struct TimeLimit {
  std::string source{};     // run.wall_limit, or a variable of the batch system
  double seconds_left = 0;  // until the job must be over
  double stop_margin = 0;   // seconds
};

/// The peak speed; MFU is a fraction of it.
struct Peak {
  double flops_per_second = 0;  // of all ranks
  Index measured_width = 0;     // of the square matrices that were multiplied; 0: the deck's peak
  bool is_disturbed = false;    // other work used the cores during the measurement
};

/// Steps from `first_step` on, which read this many tokens each.
struct StepTokens {
  Index first_step = 0;
  Index tokens = 0;
};

struct StartRecord {
  std::vector<std::pair<std::string, std::string>> versions{};  // name, version; in printing order
  std::string git_hash{};
  std::vector<std::string> hosts{};  // of each rank
  std::string deck_file{};           // as named on the command line
  std::string deck{};                // resolved, TOML
  Index data_ranks = 1;
  Index tensor_ranks = 1;
  Index sequence_ranks = 1;  // data ranks that share each sequence
  Index threads = 1;         // per rank
  Index stage = 0;
  std::string precision{};
  Index parameters = 0;
  Index steps = 0;                   // of all jobs of the run
  Index first_step = 0;              // 0, or the first step of a restart
  double load_seconds = 0;           // finding, verifying and loading its checkpoint
  double process_seconds = 0;        // since the process began
  Index tokens_per_step = 0;         // of the first step of this job
  std::vector<StepTokens> phases{};  // of the run, if its batch changes; otherwise empty
  Peak peak{};
  DataSummary data{};
  std::vector<std::string> bits_depend_on{};
  std::string bits{};   // a digest of all of these, values included; hexadecimal
  std::string state{};  // the hash of the state that a restart began with; empty at step 0
  std::optional<TimeLimit> limit{};
  std::vector<CategoryBytes> planned_memory{};  // of the largest rank
  std::vector<TrafficRow> planned_traffic{};    // only expected_elements_per_step is set
};

/// What a step learned from pairs of answers; means over its pairs.
struct PairRecord {
  Index pairs = 0;
  double chosen_reward = 0, rejected_reward = 0;
  double accuracy = 0;  // share of the pairs in which the chosen reward is larger
};

/// The parts of the loss with a teacher; means over the step's targets.
struct DistillRecord {
  double cross_entropy = 0;
  double kl = 0;  // of the student from the teacher
};

struct StepRecord {
  Index step = 0;        // from 0
  double loss = 0;       // mean over the targets of the global batch, natural log
  double grad_norm = 0;  // global, before clipping
  double lr = 0;
  Index tokens = 0;    // of this step, over all ranks
  double seconds = 0;  // of this step
  double tokens_per_second = 0;
  double mfu = 0;  // fraction of the peak, 0 to 1
  double loss_scale = 1;
  bool skipped = false;  // no update: gradients not finite, norm above the limit, or no target
  std::optional<Index> targets{};      // of this step; nullopt: every position has one
  std::optional<double> norm_limit{};  // of optimizer.skip_above, once it applies
  ExpertLoad experts{};
  std::optional<PairRecord> preference{};  // with preference.loss
  std::optional<DistillRecord> distill{};  // with distill.file
};

struct ValidationRecord {
  Index step = 0;  // steps done before it
  double loss = 0;
  Index tokens = 0;  // that were predicted
  double seconds = 0;
};

/// One table of [[evaluate]].
struct EvaluationRecord {
  std::string name{};
  Index step = 0;  // steps done before it
  double loss = 0;
  Index tokens = 0;  // that were predicted
  double seconds = 0;
};

struct CheckpointRecord {
  Index step = 0;  // steps done before it
  std::string folder{};
  Index bytes = 0;
  double seconds = 0;        // until it has its final name
  double stall_seconds = 0;  // part of these for which training stood still
  std::string state{};       // the hash of the state in it; hexadecimal
};

/// The energy of a job from its preparation to its end, as far as the system lets it be measured.
struct EnergyRecord {
  double joules = 0;                         // of all measured nodes and devices; NaN: not known
  std::optional<double> joules_per_token{};  // all of it, over the tokens of this job's steps
  double watts = 0;                          // mean of all together
  std::vector<std::string> sources{};        // RAPL, pm_counters, NVML
  Index nodes = 0, measured_nodes = 0;       // of the launch; those whose counters are read
  Index devices = 0, measured_devices = 0;   // 0 if counters of nodes include devices
};

struct EndRecord {
  std::string reason{};           // completed, nothing_to_do, wall_limit, stop_file, signal,
                                  // max_steps, diverged, verification, replay
  std::string signal{};           // "SIGTERM" if the reason is a signal; otherwise empty
  Index exit_code = 0;            // with which the process intends to end
  Index steps = 0;                // since step 0, restarts included
  double seconds = 0;             // of this process
  std::optional<Index> spikes{};  // steps skipped by optimizer.skip_above, restarts included
  std::optional<EnergyRecord> energy{};
  std::vector<MemoryRow> memory{};  // one row per rank
  std::vector<TrafficRow> traffic{};
};

}  // namespace kzero::metrics

// Counts the elements and bytes that this rank sends, by group, operation and purpose.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "base/types.hpp"

namespace kzero::comm {

enum class Operation {
  reduce_scatter,
  all_gather,
  all_reduce,
  gather,
  scatter,
  broadcast,
  all_to_all
};
enum class Purpose { gradients, parameters, activations, checkpointed_activations, matrices };

constexpr std::string_view name_of(Operation operation) {
  constexpr std::string_view names[] = {"reduce_scatter", "all_gather", "all_reduce", "gather",
                                        "scatter",        "broadcast",  "all_to_all"};
  return names[static_cast<int>(operation)];
}

constexpr std::string_view name_of(Purpose purpose) {
  constexpr std::string_view names[] = {"gradients", "parameters", "activations",
                                        "checkpointed_activations", "matrices"};
  return names[static_cast<int>(purpose)];
}

/// The key under which traffic is counted.
struct Channel {
  std::string group;
  Operation operation = Operation::all_gather;
  Purpose purpose = Purpose::parameters;

  bool operator<(const Channel& other) const {
    return std::tie(group, operation, purpose) <
           std::tie(other.group, other.operation, other.purpose);
  }
};

/// Formats a channel as "all_gather of parameters".
inline std::string describe(const Channel& channel) {
  return std::string(name_of(channel.operation)) + " of " + std::string(name_of(channel.purpose));
}

struct Volume {
  Index elements = 0;
  Index bytes = 0;
  Index bytes_between_nodes = 0;
  Index steps = 0;  // steps that used the channel
};

class Traffic {
 public:
  void add(const Channel& channel, Index elements, Index bytes, bool leaves_node) {
    Volume& volume = in_step_ ? steps_[channel] : outside_[channel];
    volume.elements += elements;
    volume.bytes += bytes;
    if (leaves_node) volume.bytes_between_nodes += bytes;
    if (in_step_ && last_step_[channel] != step_) {
      last_step_[channel] = step_;
      ++volume.steps;
    }
  }

  /// Traffic that is added until end_step() belongs to one training step. All other traffic
  /// (initial weights, validation) is counted separately.
  void begin_step() {
    ++step_;
    in_step_ = true;
  }
  void end_step() { in_step_ = false; }
  bool in_step() const { return in_step_; }

  void reset() { *this = {}; }

  /// The sums over all steps so far.
  const std::map<Channel, Volume>& in_steps() const { return steps_; }
  /// The sums of everything outside of steps, where `steps` is 0.
  const std::map<Channel, Volume>& outside() const { return outside_; }

 private:
  bool in_step_ = false;
  Index step_ = 0;  // counted from 1
  std::map<Channel, Volume> steps_, outside_;
  std::map<Channel, Index> last_step_;
};

}  // namespace kzero::comm

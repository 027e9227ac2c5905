// Counts what this rank sends, by group, operation and purpose. The unit is elements; bytes stand
// beside.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "base/types.hpp"

namespace kzero::comm {

enum class Operation { reduce_scatter, all_gather, all_reduce, broadcast };
enum class Purpose { gradients, parameters, activations, checkpointed_activations };

constexpr std::string_view name_of(Operation operation) {
  constexpr std::string_view names[] = {"reduce_scatter", "all_gather", "all_reduce", "broadcast"};
  return names[static_cast<int>(operation)];
}

constexpr std::string_view name_of(Purpose purpose) {
  constexpr std::string_view names[] = {"gradients", "parameters", "activations",
                                        "checkpointed_activations"};
  return names[static_cast<int>(purpose)];
}

/// What traffic is counted under.
struct Channel {
  std::string group;
  Operation operation = Operation::all_gather;
  Purpose purpose = Purpose::parameters;

  bool operator<(const Channel& other) const {
    return std::tie(group, operation, purpose) <
           std::tie(other.group, other.operation, other.purpose);
  }
};

struct Volume {
  Index elements = 0;
  Index bytes = 0;
};

class Traffic {
 public:
  void add(const Channel& channel, Index elements, Index bytes) {
    Volume& volume = volumes_[channel];
    volume.elements += elements;
    volume.bytes += bytes;
  }
  void reset() { volumes_.clear(); }
  const std::map<Channel, Volume>& volumes() const { return volumes_; }

 private:
  std::map<Channel, Volume> volumes_;
};

}  // namespace kzero::comm

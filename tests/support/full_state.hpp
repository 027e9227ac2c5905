// The state of a training as if one rank held it all, to compare runs on different grids.
#pragma once

#include <cstring>
#include <map>
#include <sstream>

#include "support/training.hpp"

namespace kzero::tests {

/// Every element's bytes, by "PARAMETER/ARRAY", in the order of the parameter.
using FullState = std::map<std::string, std::vector<float>>;

namespace detail {

inline void put(FullState& state, const std::string& name, Index begin,
                std::span<const float> values) {
  std::vector<float>& all = state[name];
  const auto end = static_cast<std::size_t>(begin) + values.size();
  if (all.size() < end) all.resize(end);
  std::memcpy(all.data() + begin, values.data(), values.size_bytes());
}

inline std::string packed(const std::vector<checkpoint::StateShard>& shards) {
  std::ostringstream out;
  for (const checkpoint::StateShard& shard : shards) {
    for (const checkpoint::StateValues& array : shard.arrays) {
      std::size_t at = 0;
      for (const checkpoint::Range& range : shard.ranges) {
        out << shard.parameter << '/' << array.name << ' ' << range.begin << ' ' << range.count
            << '\n';
        const auto values = array.values.subspan(at, static_cast<std::size_t>(range.count));
        out.write(reinterpret_cast<const char*>(values.data()),
                  static_cast<std::streamsize>(values.size_bytes()));
        at += values.size();
      }
    }
  }
  return out.str();
}

}  // namespace detail

/// The state on the root of `group`, empty elsewhere. Collective over the training's ranks.
inline FullState full_state(Training& training, const grid::Group& group) {
  FullState state;
  for (const std::string& text : group.gather(detail::packed(training.engine->owned_shards()))) {
    std::istringstream in(text);
    std::string name;
    for (Index begin = 0, count = 0; in >> name >> begin >> count;) {
      in.get();
      std::vector<float> values(static_cast<std::size_t>(count));
      in.read(reinterpret_cast<char*>(values.data()), count * static_cast<Index>(sizeof(float)));
      detail::put(state, name, begin, values);
    }
  }
  return state;
}

inline bool same_bits(const FullState& a, const FullState& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, values] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second.size() != values.size()) return false;
    if (std::memcmp(values.data(), other->second.data(), values.size() * sizeof(float)) != 0)
      return false;
  }
  return true;
}

}  // namespace kzero::tests

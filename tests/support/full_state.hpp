// The state of a training as if one rank held all of it. Used to compare runs on different grids.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <sstream>

#include "support/host_shards.hpp"
#include "support/training.hpp"

namespace kzero::tests {

/// The values by "PARAMETER/ARRAY", in the order of the parameter's elements.
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
  for (const checkpoint::StateShard& shard : HostShards(shards)) {
    for (const checkpoint::StateValues& array : shard.arrays) {
      if (array.values.empty()) continue;  // the array does not cover the parameter
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

/// Returns, on every rank of `group`, the state that its ranks own together. A rank without a part
/// passes {}. Collective over `group`.
inline FullState full_state(const std::vector<checkpoint::StateShard>& owned,
                            const grid::Group& group) {
  std::string all;
  for (const std::string& text : group.gather(detail::packed(owned))) all += text;
  std::istringstream in(group.broadcast(all));
  FullState state;
  std::string name;
  std::size_t owned_elements = 0, elements = 0;
  for (Index begin = 0, count = 0; in >> name >> begin >> count;) {
    in.get();
    std::vector<float> values(static_cast<std::size_t>(count));
    in.read(reinterpret_cast<char*>(values.data()), count * static_cast<Index>(sizeof(float)));
    detail::put(state, name, begin, values);
    owned_elements += values.size();
  }
  for (const auto& array : state) elements += array.second.size();
  EXPECT_EQ(owned_elements, elements) << "every element has one owner";
  return state;
}

/// Returns whether a rank's shard, which other ranks may also hold, has the values of `state`.
inline bool agrees(const checkpoint::StateShard& shard, const FullState& state) {
  for (const checkpoint::StateValues& array : shard.arrays) {
    if (array.values.empty()) continue;
    const std::vector<float>& all = state.at(shard.parameter + "/" + array.name);
    std::size_t at = 0;
    for (const checkpoint::Range& range : shard.ranges) {
      const auto count = static_cast<std::size_t>(range.count);
      if (std::memcmp(all.data() + range.begin, array.values.data() + at, count * sizeof(float)) !=
          0)
        return false;
      at += count;
    }
  }
  return true;
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

#include "checkpoint/reader.hpp"

#include <algorithm>
#include <map>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/input_file.hpp"
#include "checkpoint/format/parameter_hash.hpp"
#include "grid/agreement.hpp"

namespace kzero::checkpoint {

namespace {

/// Ranges closer than this are read as one, up to the window. A small read costs as much as reading
/// this many elements.
constexpr Index gap_elements = Index{1} << 14;
constexpr Index window_elements = Index{1} << 20;

/// The location of a stored range of a parameter.
struct Source {
  Range range;
  const StoredShard* shard = nullptr;
  Index shard_file = 0;
  Index element = 0;  // the shard's element at which the range begins
};

/// A copy of `count` elements from a stored shard to a wanted shard.
struct Copy {
  Index from = 0;
  Index count = 0;
  Index to = 0;
  const StateShard* target = nullptr;
};

/// Orders copies by shard file and by shard within it. Each file is opened once and read in order.
using Plan = std::map<Index, std::map<const StoredShard*, std::vector<Copy>>>;

/// All stored ranges of a parameter, by position.
std::vector<Source> sources_of(const std::vector<LocatedShard>& held) {
  std::vector<Source> sources;
  for (const auto& [shard_file, shard] : held) {
    Index element = 0;
    for (const Range& range : expand(shard->runs)) {
      sources.push_back({range, shard, shard_file, element});
      element += range.count;
    }
  }
  std::ranges::sort(sources, {}, [](const Source& source) { return source.range.begin; });
  return sources;
}

/// Joins a copy to the previous one if both sides are contiguous.
void add(std::vector<Copy>& copies, const Copy& copy) {
  if (!copies.empty()) {
    Copy& last = copies.back();
    if (last.target == copy.target && last.from + last.count == copy.from &&
        last.to + last.count == copy.to) {
      last.count += copy.count;
      return;
    }
  }
  copies.push_back(copy);
}

void plan_range(const Found& from, const std::vector<Source>& sources, const StateShard& shard,
                Range range, Index to, Plan& plan) {
  const Index end = range.begin + range.count;
  for (Index at = range.begin; at < end;) {
    auto source = std::ranges::upper_bound(
        sources, at, {}, [](const Source& candidate) { return candidate.range.begin; });
    const bool held =
        source != sources.begin() && at < (--source)->range.begin + source->range.count;
    KZERO_REQUIRE(held, ExitCode::files, "{}: holds no element {} of {}, wanted with [{}, {})",
                  from.path.string(), at, shard.parameter, range.begin, end);
    const Index inside = at - source->range.begin;
    const Index count = std::min(end - at, source->range.count - inside);
    add(plan[source->shard_file][source->shard], {source->element + inside, count, to, &shard});
    at += count;
    to += count;
  }
}

/// Returns what the search has filled for this shard and this memory. Null if nothing.
const Filled* filled_of(const Found& from, const StateShard& wanted) {
  const auto same_place = [](const StateValues& a, const StateValues& b) {
    return a.name == b.name && a.values.data() == b.values.data() &&
           a.values.size() == b.values.size();
  };
  const auto filled = std::ranges::find_if(from.filled, [&](const Filled& candidate) {
    const StateShard& shard = candidate.shard;
    return std::ranges::equal(shard.arrays, wanted.arrays, same_place) &&
           shard.parameter == wanted.parameter && shard.ranges == wanted.ranges;
  });
  return filled == from.filled.end() ? nullptr : &*filled;
}

/// Returns the hash that the search computed while it filled the shard. Otherwise computes the hash
/// now. Values that were sent on to a device are hashed from there.
std::uint64_t hash_of_loaded(const Found& from, const StateShard& shard, Index position) {
  const Filled* filled = shard.staging == nullptr ? filled_of(from, shard) : nullptr;
  return filled != nullptr ? filled->hash : hash_of(shard, position);
}

bool holds_array(const Manifest& manifest, const std::string& name) {
  return std::ranges::find(manifest.state_arrays, name, &param::StateArray::name) !=
         manifest.state_arrays.end();
}

void require_readable(const Found& from, const StateShard& shard) {
  const Index elements = elements_of(shard.ranges);
  for (const auto& [name, values] : shard.arrays) {
    KZERO_REQUIRE(values.empty() || std::ssize(values) == elements, ExitCode::other,
                  "internal error: room for {} values of {} for ranges of {} elements",
                  values.size(), shard.parameter, elements);
    KZERO_REQUIRE(values.empty() || holds_array(from.manifest, name), ExitCode::files,
                  "{}: holds no state array {}, wanted of {}", from.path.string(), name,
                  shard.parameter);
  }
}

class Catalog {
 public:
  explicit Catalog(const Found& from)
      : from_(from),
        positions_(positions_of(from.manifest.parameters)),
        held_(shards_by_parameter(from.manifest)) {}

  /// Adds the copies that fill a shard. The shard must outlive the plan.
  void add_to(Plan& plan, const StateShard& shard) {
    look_up(shard.parameter);
    Index to = 0;
    for (const Range& range : shard.ranges) {
      plan_range(from_, sources_, shard, range, to, plan);
      to += range.count;
    }
  }

 private:
  void look_up(const std::string& parameter) {
    if (parameter == parameter_) return;
    const auto position = positions_.find(parameter);
    sources_ =
        position == positions_.end() ? std::vector<Source>{} : sources_of(held_[position->second]);
    parameter_ = parameter;
  }

  const Found& from_;
  Positions positions_;
  std::vector<std::vector<LocatedShard>> held_;
  std::string parameter_;  // the last one that was looked up; its sources are below
  std::vector<Source> sources_;
};

/// An open shard file, and one dataset's part in it.
struct StoredValues {
  const InputFile& file;
  const std::filesystem::path& path;
  Index offset = 0;  // in bytes

  void read(Index begin, std::span<float> values) const {
    const auto bytes = std::as_writable_bytes(values);
    const Index count = file.read(offset + begin * static_cast<Index>(sizeof(float)), bytes);
    KZERO_REQUIRE(count == static_cast<Index>(bytes.size()), ExitCode::files, "{}: ends too early",
                  path.string());
  }
};

/// Reads one dataset's copies, sorted by offset, in windows that join nearby copies.
void read_copies(const StoredValues& stored, const std::string& array,
                 std::span<const Copy> copies) {
  std::vector<float> window;
  for (std::size_t first = 0, last = 0; first < copies.size(); first = last) {
    const Index begin = copies[first].from;
    Index end = begin + copies[first].count;
    for (last = first + 1; last < copies.size(); ++last) {
      const Index reach = std::max(end, copies[last].from + copies[last].count);
      if (copies[last].from - end > gap_elements || reach - begin > window_elements) break;
      end = reach;
    }
    const auto target = [&](const Copy& copy) {
      return copy.target->values(array).subspan(copy.to, copy.count);
    };
    if (last == first + 1) {
      stored.read(begin, target(copies[first]));
      continue;
    }
    window.resize(end - begin);
    stored.read(begin, window);
    for (const Copy& copy : copies.subspan(first, last - first)) {
      std::ranges::copy(std::span(window).subspan(copy.from - begin, copy.count),
                        target(copy).begin());
    }
  }
}

void read_shard(const InputFile& file, const std::filesystem::path& path, const StoredShard& stored,
                const param::StateArrays& arrays, const std::vector<Copy>& copies) {
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    const std::string& name = arrays[a].name;
    std::vector<Copy> wanted;
    std::ranges::copy_if(copies, std::back_inserter(wanted),
                         [&](const Copy& copy) { return !copy.target->values(name).empty(); });
    if (wanted.empty()) continue;
    KZERO_REQUIRE(stored.offsets[a] != no_offset, ExitCode::files,
                  "{}: holds no values of {}, wanted of {}", path.string(), name,
                  wanted.front().target->parameter);
    std::ranges::sort(wanted, {}, &Copy::from);
    read_copies({file, path, stored.offsets[a]}, name, wanted);
  }
}

void carry_out(const Plan& plan, const Found& from) {
  for (const auto& [shard_index, shards] : plan) {
    const auto path = from.path / from.manifest.shard_files[shard_index].file;
    const InputFile file(path);
    for (const auto& [stored, copies] : shards) {
      read_shard(file, path, *stored, from.manifest.state_arrays, copies);
    }
  }
}

/// Elements [begin, begin + count) of the ranges' concatenation.
std::vector<Range> slice_of(const std::vector<Range>& ranges, Index begin, Index count) {
  std::vector<Range> slice;
  for (const Range& range : ranges) {
    const Index first = std::clamp(begin, Index{0}, range.count);
    const Index last = std::clamp(begin + count, Index{0}, range.count);
    if (first < last) slice.push_back({range.begin + first, last - first});
    begin -= range.count;
  }
  return slice;
}

/// Reads a shard's values through its staging. Each block is a separate shard in host memory.
void read_in_blocks(const Found& from, const StateShard& wanted, Catalog& catalog) {
  BlockWriter blocks(wanted.staging, wanted.arrays);
  while (const auto block = blocks.next()) {
    StateShard part{wanted.parameter, slice_of(wanted.ranges, block->begin, block->count)};
    for (std::size_t a = 0; a < wanted.arrays.size(); ++a)
      part.arrays.push_back({wanted.arrays[a].name, block->arrays[a]});
    Plan plan;
    catalog.add_to(plan, part);
    carry_out(plan, from);
  }
}

}  // namespace

void read(const Found& from, std::span<const StateShard> wanted) {
  Catalog catalog(from);
  Plan plan;
  std::vector<const StateShard*> staged;
  for (const StateShard& shard : wanted) {
    if (filled_of(from, shard) != nullptr) continue;
    require_readable(from, shard);
    if (shard.staging != nullptr) {
      staged.push_back(&shard);
    } else {
      catalog.add_to(plan, shard);
    }
  }
  carry_out(plan, from);
  for (const StateShard* shard : staged) read_in_blocks(from, *shard, catalog);
}

void require_saved_values(const grid::Group& world, const Found& found,
                          std::span<const StateShard> mine) {
  const Positions positions = positions_of(found.manifest.parameters);
  std::uint64_t hash = 0;
  for (const StateShard& shard : mine) {
    KZERO_REQUIRE(has_arrays(shard, found.manifest.state_arrays), ExitCode::other,
                  "internal error: {} was loaded with other state arrays than were saved",
                  shard.parameter);
    hash += hash_of_loaded(found, shard, positions.at(shard.parameter));
  }
  world.sum(std::span(&hash, 1));
  grid::collectively(world, [&] {
    if (!world.is_root()) return;
    KZERO_REQUIRE(hash == found.manifest.parameter_hash, ExitCode::files,
                  "{}: what was loaded has the hash {}, its manifest says {}", found.path.string(),
                  format_checksum(hash), format_checksum(found.manifest.parameter_hash));
  });
}

std::string weights_in(const Found& found, bool is_average) {
  if (!is_average) return param::master_weights;
  const Manifest& m = found.manifest;
  const bool has_average = std::ranges::find(m.state_arrays, param::averaged_weights,
                                             &param::StateArray::name) != m.state_arrays.end();
  KZERO_REQUIRE(has_average, ExitCode::usage,
                "{}: has no moving average of the weights; a training with optimizer.ema saves one",
                found.path.string());
  KZERO_REQUIRE(m.step - m.skipped_steps > m.optimizer_start, ExitCode::usage,
                "{}: is from before the first update, so its moving average of the weights has not "
                "begun",
                found.path.string());
  return param::averaged_weights;
}

}  // namespace kzero::checkpoint

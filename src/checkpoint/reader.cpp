#include "checkpoint/reader.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "checkpoint/hdf5_file.hpp"

namespace kzero::checkpoint {

namespace {

/// Ranges closer than this are read as one, up to the window: a small read costs as much as this
/// many elements.
constexpr Index gap_elements = Index{1} << 14;
constexpr Index window_elements = Index{1} << 20;

/// Where a range of a parameter is stored.
struct Source {
  Range range;
  Index shard = 0;
  Index piece = 0;    // within the shard
  Index element = 0;  // of the datasets, at which the range begins
};

/// `count` elements of a dataset, and where in a wanted piece they go.
struct Copy {
  Index from = 0;
  Index count = 0;
  Index to = 0;
  const Piece* target = nullptr;
};

/// Copies by shard and piece within it, so that each file is opened once.
using Plan = std::map<Index, std::map<Index, std::vector<Copy>>>;

using Sources = std::map<std::string, std::vector<Source>>;

Sources sources_of(const Manifest& manifest, std::span<const Piece> wanted) {
  Sources sources;
  for (const Piece& piece : wanted) sources[piece.parameter];
  for (std::size_t s = 0; s < manifest.shards.size(); ++s) {
    const auto& pieces = manifest.shards[s].pieces;
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      const auto found = sources.find(manifest.parameters[pieces[p].parameter].name);
      if (found == sources.end()) continue;
      Index element = 0;
      for (const Range& range : pieces[p].ranges) {
        found->second.push_back({range, static_cast<Index>(s), static_cast<Index>(p), element});
        element += range.count;
      }
    }
  }
  for (auto& [name, list] : sources) {
    std::ranges::sort(list, {}, [](const Source& source) { return source.range.begin; });
  }
  return sources;
}

void plan_range(const Found& from, const std::vector<Source>& sources, const Piece& piece,
                Range range, Index to, Plan& plan) {
  const Index end = range.begin + range.count;
  for (Index at = range.begin; at < end;) {
    auto source = std::ranges::upper_bound(
        sources, at, {}, [](const Source& candidate) { return candidate.range.begin; });
    const bool held =
        source != sources.begin() && at < (--source)->range.begin + source->range.count;
    KZERO_REQUIRE(held, ExitCode::files, "{}: holds no element {} of {}, wanted with [{}, {})",
                  from.path.string(), at, piece.parameter, range.begin, end);
    const Index inside = at - source->range.begin;
    const Index count = std::min(end - at, source->range.count - inside);
    plan[source->shard][source->piece].push_back({source->element + inside, count, to, &piece});
    at += count;
    to += count;
  }
}

Plan plan_of(const Found& from, std::span<const Piece> wanted) {
  const Sources sources = sources_of(from.manifest, wanted);
  Plan plan;
  for (const Piece& piece : wanted) {
    const Index elements = elements_of(piece.ranges);
    for (const auto state : piece.states()) {
      KZERO_REQUIRE(state.empty() || static_cast<Index>(state.size()) == elements, ExitCode::other,
                    "internal error: room for {} values of {} for ranges of {} elements",
                    state.size(), piece.parameter, elements);
    }
    Index to = 0;
    for (const Range& range : piece.ranges) {
      plan_range(from, sources.at(piece.parameter), piece, range, to, plan);
      to += range.count;
    }
  }
  return plan;
}

/// Reads one dataset's copies, sorted by where they come from, in windows that join near ones.
void read_copies(const Hdf5File& file, const std::string& dataset, std::size_t state,
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
      return copy.target->states()[state].subspan(copy.to, copy.count);
    };
    if (last == first + 1) {
      file.read_range(dataset, begin, target(copies[first]));
      continue;
    }
    window.resize(end - begin);
    file.read_range(dataset, begin, window);
    for (const Copy& copy : copies.subspan(first, last - first)) {
      std::ranges::copy(std::span(window).subspan(copy.from - begin, copy.count),
                        target(copy).begin());
    }
  }
}

void read_piece(const Hdf5File& file, const std::filesystem::path& path, const std::string& name,
                const StoredPiece& stored, const std::vector<Copy>& copies) {
  for (std::size_t s = 0; s < state_count; ++s) {
    std::vector<Copy> wanted;
    std::ranges::copy_if(copies, std::back_inserter(wanted),
                         [&](const Copy& copy) { return !copy.target->states()[s].empty(); });
    const std::string dataset = name + "/" + state_names[s];
    std::ranges::sort(wanted, {}, &Copy::from);
    read_copies(file, dataset, s, wanted);
    for (const Copy& copy : wanted) {
      if (copy.count != elements_of(stored.ranges)) continue;
      const auto values = copy.target->states()[s].subspan(copy.to, copy.count);
      KZERO_REQUIRE(checksum(std::as_bytes(values)) == stored.checksums[s], ExitCode::files,
                    "{}: dataset {} is damaged (its checksum is not the manifest's)", path.string(),
                    dataset);
    }
  }
}

}  // namespace

void read(const Found& from, std::span<const Piece> wanted) {
  for (const auto& [shard_index, pieces] : plan_of(from, wanted)) {
    const Shard& shard = from.manifest.shards[shard_index];
    const auto path = from.path / shard.file;
    const Hdf5File file = Hdf5File::open(path);
    for (const auto& [piece_index, copies] : pieces) {
      const StoredPiece& stored = shard.pieces[piece_index];
      read_piece(file, path, from.manifest.parameters[stored.parameter].name, stored, copies);
    }
  }
}

void require_same_parameters(const Found& found, const param::Table& table) {
  const auto& saved = found.manifest.parameters;
  const auto wanted = parameters_of(table);
  const auto describe = [](const std::vector<Parameter>& list, std::size_t i) {
    return i < list.size() ? fmt::format("{} [{}]", list[i].name, fmt::join(list[i].shape, ", "))
                           : std::string("nothing more");
  };
  for (std::size_t i = 0; i < std::max(saved.size(), wanted.size()); ++i) {
    if (i < saved.size() && i < wanted.size() && saved[i] == wanted[i]) continue;
    fail(ExitCode::usage,
         "{}: is of another model: parameter {} is {} there and {} in the deck's model; set "
         "[model] as it "
         "was saved (`kzero inspect` shows it) or choose another checkpoint.folder",
         found.path.string(), i, describe(saved, i), describe(wanted, i));
  }
}

}  // namespace kzero::checkpoint

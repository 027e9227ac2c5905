#include "checkpoint/writer.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/version.hpp"
#include "checkpoint/files.hpp"
#include "checkpoint/hdf5_file.hpp"
#include "checkpoint/retention.hpp"
#include "checkpoint/verify.hpp"
#include "grid/agreement.hpp"

namespace kzero::checkpoint {

namespace {

namespace fs = std::filesystem;

std::map<std::string, Index> positions_of(const std::vector<Parameter>& parameters) {
  std::map<std::string, Index> positions;
  for (const Parameter& p : parameters) {
    positions.emplace(p.name, static_cast<Index>(positions.size()));
  }
  return positions;
}

StoredPiece write_piece(Hdf5File& file, const Piece& piece, Index position,
                        const Parameter& parameter) {
  StoredPiece stored{.parameter = position, .ranges = piece.ranges};
  const Index elements = elements_of(piece.ranges);
  file.create_group(piece.parameter);
  file.set_attribute(piece.parameter, "shape", parameter.shape);
  std::vector<Index> ranges;
  for (const Range& r : piece.ranges) ranges.insert(ranges.end(), {r.begin, r.count});
  file.write(piece.parameter + "/ranges", std::span<const Index>(ranges),
             {static_cast<Index>(piece.ranges.size()), 2});
  const auto states = piece.states();
  for (std::size_t s = 0; s < states.size(); ++s) {
    KZERO_REQUIRE(static_cast<Index>(states[s].size()) == elements, ExitCode::other,
                  "internal error: {} of {} has {} values for ranges of {} elements",
                  state_names[s], piece.parameter, states[s].size(), elements);
    const std::string dataset = piece.parameter + "/" + state_names[s];
    stored.checksums[s] = checksum(std::as_bytes(states[s]));
    file.write(dataset, std::span<const float>(states[s]), {elements});
    file.set_attribute(dataset, "xxh3_64", stored.checksums[s]);
    stored.offsets[s] = file.offset_of(dataset);
  }
  return stored;
}

Shard write_shard(const fs::path& folder, int rank, const std::vector<Parameter>& parameters,
                  std::span<const Piece> mine) {
  Shard shard{.file = fmt::format("shard_{:05}.h5", rank)};
  const fs::path path = folder / shard.file;
  const auto positions = positions_of(parameters);
  Hdf5File file = Hdf5File::create(path, 0);
  for (const Piece& piece : mine) {
    if (piece.ranges.empty()) continue;
    const auto found = positions.find(piece.parameter);
    KZERO_REQUIRE(found != positions.end(), ExitCode::other,
                  "internal error: {} is saved but not in the table of parameters",
                  piece.parameter);
    shard.pieces.push_back(write_piece(file, piece, found->second, parameters[found->second]));
  }
  file.close();
  sync_to_disk(path);

  const Scan scan = scan_file(path, regions_of(shard));
  shard.bytes = scan.bytes;
  shard.checksum = scan.checksum;
  const auto problems = problems_of(path, parameters, shard, scan);
  KZERO_REQUIRE(problems.empty(), ExitCode::files, "{} (found when reading back what was written)",
                problems.front());
  return shard;
}

/// A shard's record as words, to be sent to the root.
std::string pack(const Shard& shard) {
  std::vector<Index> words{shard.bytes, static_cast<Index>(shard.checksum)};
  for (const StoredPiece& piece : shard.pieces) {
    words.insert(words.end(), {piece.parameter, static_cast<Index>(piece.ranges.size())});
    for (const Range& r : piece.ranges) words.insert(words.end(), {r.begin, r.count});
    for (const auto digest : piece.checksums) words.push_back(static_cast<Index>(digest));
    words.insert(words.end(), piece.offsets.begin(), piece.offsets.end());
  }
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(Index)};
}

Shard unpack(const std::string& bytes, std::string file) {
  std::vector<Index> words(bytes.size() / sizeof(Index));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  auto word = words.begin();
  Shard shard{.file = std::move(file), .bytes = *word++};
  shard.checksum = static_cast<std::uint64_t>(*word++);
  while (word != words.end()) {
    StoredPiece piece{.parameter = *word++};
    piece.ranges.resize(*word++);
    for (Range& r : piece.ranges) {
      r.begin = *word++;
      r.count = *word++;
    }
    for (auto& digest : piece.checksums) digest = static_cast<std::uint64_t>(*word++);
    for (auto& offset : piece.offsets) offset = *word++;
    shard.pieces.push_back(std::move(piece));
  }
  return shard;
}

/// A checkpoint with a hole is worse than none: every element of every parameter, once.
void check_coverage(const Manifest& manifest) {
  std::vector<std::vector<Range>> held(manifest.parameters.size());
  for (const Shard& shard : manifest.shards) {
    for (const StoredPiece& piece : shard.pieces) {
      auto& ranges = held[piece.parameter];
      ranges.insert(ranges.end(), piece.ranges.begin(), piece.ranges.end());
    }
  }
  for (std::size_t p = 0; p < held.size(); ++p) {
    std::ranges::sort(held[p], {}, &Range::begin);
    Index end = 0;
    for (const Range& range : held[p]) {
      if (range.begin != end) break;
      end += range.count;
    }
    const Parameter& parameter = manifest.parameters[p];
    KZERO_REQUIRE(end == parameter.elements() && elements_of(held[p]) == end, ExitCode::other,
                  "internal error: the ranks' ranges of {} do not cover its {} elements once "
                  "(element {} is the first to be missing or doubled)",
                  parameter.name, parameter.elements(), end);
  }
}

/// What may fail without harm to the checkpoint that is there by now.
void tidy(const fs::path& folder, Index step, Index keep, std::vector<std::string>& problems) {
  try {
    write_durably(folder / "latest", folder_name(step) + "\n");
    const auto left = retain(folder, step, keep);
    problems.insert(problems.end(), left.begin(), left.end());
  } catch (const Error& error) {
    problems.emplace_back(error.what());
  }
}

}  // namespace

Written write(const grid::Group& world, const fs::path& folder, Manifest manifest,
              std::span<const Piece> mine, Index keep) {
  const fs::path target = folder / folder_name(manifest.step);
  const fs::path partial = with_suffix(target, ".partial");
  Written written{.path = target};
  manifest.kzero_version = version();
  manifest.git_hash = git_hash();
  try {
    grid::together(world, [&] {
      if (!world.is_root()) return;
      std::error_code error;
      fs::create_directories(folder, error);
      KZERO_REQUIRE(!error, ExitCode::files, "{}: the folder of checkpoints cannot be created ({})",
                    folder.string(), error.message());
      remove_stale(folder);
      fs::create_directory(partial, error);
      KZERO_REQUIRE(!error, ExitCode::files, "{}: cannot be created ({})", partial.string(),
                    error.message());
    });
    Shard shard;
    grid::together(world,
                   [&] { shard = write_shard(partial, world.rank(), manifest.parameters, mine); });
    const auto packed = world.gather(pack(shard));
    written.bytes = static_cast<Index>(world.sum(static_cast<double>(shard.bytes)));
    grid::together(world, [&] {
      if (!world.is_root()) return;
      for (std::size_t r = 0; r < packed.size(); ++r) {
        manifest.shards.push_back(unpack(packed[r], fmt::format("shard_{:05}.h5", r)));
      }
      check_coverage(manifest);
      write_manifest(partial, manifest);
      install(partial, target);
      tidy(folder, manifest.step, keep, written.problems);
    });
  } catch (const Error&) {
    std::error_code ignored;
    if (world.is_root()) fs::remove_all(partial, ignored);
    throw;
  }
  return written;
}

}  // namespace kzero::checkpoint

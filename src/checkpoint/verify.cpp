#include "checkpoint/verify.hpp"

#include "base/checksum.hpp"
#include "base/error.hpp"

namespace kzero::checkpoint {

std::vector<Region> regions_of(const Shard& shard) {
  std::vector<Region> regions;
  for (const StoredPiece& piece : shard.pieces) {
    const Index bytes = elements_of(piece.ranges) * Index{sizeof(float)};
    for (const Index offset : piece.offsets) regions.push_back({offset, bytes});
  }
  return regions;
}

std::vector<std::string> problems_of(const std::filesystem::path& path,
                                     const std::vector<Parameter>& parameters, const Shard& shard,
                                     const Scan& scan) {
  std::vector<std::string> problems;
  if (scan.bytes != shard.bytes) {
    problems.push_back(fmt::format("{}: has {} bytes, its manifest says {}", path.string(),
                                   scan.bytes, shard.bytes));
  }
  const auto compare = [&](const std::string& part, std::uint64_t found, std::uint64_t wanted) {
    if (found == wanted) return;
    problems.push_back(fmt::format("{}: {} is damaged (checksum {}, its manifest says {})",
                                   path.string(), part, format_checksum(found),
                                   format_checksum(wanted)));
  };
  std::size_t region = 0;
  for (const StoredPiece& piece : shard.pieces) {
    for (Index s = 0; s < state_count; ++s) {
      compare("dataset " + parameters[piece.parameter].name + "/" + state_names[s],
              scan.regions[region++], piece.checksums[s]);
    }
  }
  if (problems.empty())
    compare("the structure between its datasets", scan.checksum, shard.checksum);
  return problems;
}

std::vector<std::string> verify_shard(const std::filesystem::path& folder,
                                      const std::vector<Parameter>& parameters,
                                      const Shard& shard) {
  const auto path = folder / shard.file;
  try {
    return problems_of(path, parameters, shard, scan_file(path, regions_of(shard)));
  } catch (const Error& error) {
    return {error.what()};
  }
}

}  // namespace kzero::checkpoint

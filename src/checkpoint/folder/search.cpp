#include "checkpoint/folder/search.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "checkpoint/folder/retention.hpp"
#include "checkpoint/format/verify.hpp"
#include "grid/agreement.hpp"

namespace kzero::checkpoint {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::vector<std::string> shared_candidates(const grid::Group& world, const fs::path& folder) {
  std::vector<std::string> paths;
  grid::collectively(world, [&] {
    if (!world.is_root()) return;
    for (const fs::path& path : candidates(folder)) paths.push_back(path.string());
  });
  return lines_of(world.broadcast(joined(paths)));
}

/// One rank reads the manifest's bytes. All ranks parse them.
Manifest shared_manifest(const grid::Group& world, const fs::path& path,
                         const ParametersOf& parameters_of) {
  std::string bytes;
  grid::collectively(world, [&] {
    if (world.is_root()) bytes = load_file(path / manifest_name, max_manifest_bytes);
  });
  bytes = world.broadcast(bytes);
  Manifest manifest;
  grid::collectively(world, [&] {
    manifest = parse_manifest(bytes, path / manifest_name);
    require_named_after(path, manifest.step);
    require_parameters(manifest, parameters_of, path / manifest_name);
  });
  return manifest;
}

std::vector<std::string> shared_verification(const grid::Group& world, const fs::path& path,
                                             const Manifest& manifest,
                                             WantedShards& wanted_shards) {
  // Many ranks verify few files in slices. On the grid that wrote them each rank gets its own
  // shards.
  const auto shard_files = static_cast<Index>(manifest.shard_files.size());
  const Index parts = shard_files == 0 ? 1 : ceil_div(world.size(), shard_files);
  std::vector<std::string> mine;
  for (Index i = world.rank(); i < shard_files * parts; i += world.size()) {
    const auto found = verify_shard(path, manifest, manifest.shard_files[i / parts],
                                    {i % parts, parts}, wanted_shards);
    mine.insert(mine.end(), found.begin(), found.end());
  }
  std::vector<std::string> all;
  for (const std::string& text : world.gather(joined(mine))) {
    for (const std::string& line : lines_of(text)) {
      if (std::ranges::find(all, line) == all.end()) all.push_back(line);
    }
  }
  return lines_of(world.broadcast(joined(all)));
}

}  // namespace

std::optional<Found> newest(const grid::Group& world, const fs::path& folder,
                            const ParametersOf& parameters_of, std::vector<std::string>& problems,
                            std::span<const StateShard> wanted) {
  for (const std::string& path : shared_candidates(world, folder)) {
    try {
      Found found{path, shared_manifest(world, path, parameters_of)};
      WantedShards wanted_shards(wanted, found.manifest);
      const auto damage = shared_verification(world, path, found.manifest, wanted_shards);
      if (damage.empty()) {
        found.filled = wanted_shards.filled();
        return found;
      }
      problems.insert(problems.end(), damage.begin(), damage.end());
    } catch (const Error& error) {
      problems.emplace_back(error.what());
    }
  }
  return std::nullopt;
}

Found open(const grid::Group& world, const fs::path& path, const ParametersOf& parameters_of,
           std::vector<std::string>& problems) {
  auto found = newest(world, path, parameters_of, problems);
  KZERO_REQUIRE(found, ExitCode::files, "{}: holds no complete checkpoint{}{}", path.string(),
                problems.empty() ? "" : "\n", fmt::join(problems, "\n"));
  return std::move(*found);
}

}  // namespace kzero::checkpoint

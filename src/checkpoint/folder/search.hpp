// Finds the checkpoint to start from: the newest that is complete and undamaged.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/format/manifest.hpp"
#include "checkpoint/format/wanted_shards.hpp"
#include "grid/group.hpp"

namespace kzero::checkpoint {

struct Found {
  std::filesystem::path path;
  Manifest manifest;
  std::vector<Filled> filled{};  // shards that this rank wanted; read() leaves them untouched
};

/// Finds the newest complete checkpoint in `folder` (or `folder` itself, if it is one) whose files
/// all have the sizes and checksums of its manifest. Returns nullopt if the folder does not exist
/// or holds no good one. Each newer one that was skipped adds messages to `problems`, with file and
/// dataset. A checkpoint is also skipped if its parameters differ from `parameters_of` its model,
/// which is engine::saved_parameters. The ranks divide the reading and get the same result.
/// `wanted` shards that are stored contiguously are filled during verification. If nothing is
/// found, their values are undefined. Throws Error(files) if the folder cannot be listed.
/// Collective over `world`.
std::optional<Found> newest(const grid::Group& world, const std::filesystem::path& folder,
                            const ParametersOf& parameters_of, std::vector<std::string>& problems,
                            std::span<const StateShard> wanted = {});

/// Finds the newest checkpoint. Throws Error(files) if there is none. Collective over `world`.
Found open(const grid::Group& world, const std::filesystem::path& path,
           const ParametersOf& parameters_of, std::vector<std::string>& problems);

}  // namespace kzero::checkpoint

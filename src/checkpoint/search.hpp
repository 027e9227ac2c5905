// Finds the checkpoint to start from: the newest one that is complete and undamaged.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/targets.hpp"
#include "grid/group.hpp"

namespace kzero::checkpoint {

struct Found {
  std::filesystem::path path;
  Manifest manifest;
  std::vector<Filled> filled{};  // of what this rank wanted: read() leaves it as it is
};

/// The newest complete checkpoint in `folder` (or `folder` itself, if it is one) whose files all
/// have the sizes and checksums of its manifest; none if the folder does not exist or holds no good
/// one. Each newer one that was passed over adds messages to `problems`, with file and dataset. The
/// ranks share the reading and get the same answer. Of the shards that this rank `wanted`, those
/// that it comes upon as they are wanted are filled; without an answer, their values mean nothing.
/// Throws Error(files) if the folder cannot be listed. Collective over `world`.
std::optional<Found> newest(const grid::Group& world, const std::filesystem::path& folder,
                            std::vector<std::string>& problems,
                            std::span<const StateShard> wanted = {});

/// As newest(), where there has to be one: Error(files) otherwise. Collective over `world`.
Found open(const grid::Group& world, const std::filesystem::path& path,
           std::vector<std::string>& problems);

}  // namespace kzero::checkpoint

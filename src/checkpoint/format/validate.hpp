// Validates the numbers of a manifest, from which reading and verifying compute offsets, sizes and
// memory. The checksum only finds damage, not wrong numbers from another program.
#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/format/manifest.hpp"

namespace kzero::checkpoint {

/// Throws Error(files) unless there are 1 to param::max_state_arrays arrays with different names.
/// `path` is for messages.
void require_state_arrays(const param::StateArrays& arrays, const std::filesystem::path& path);

/// Throws Error(files) with the first impossible number: more skipped steps than steps, a tensor
/// too large to count, a file outside the checkpoint's folder, ranges of a shard that overlap or
/// exceed their tensor, parts that exceed their file, elements that are missing. `path` is for
/// messages.
void validate(const Manifest& manifest, const std::filesystem::path& path);

/// Describes the first parameter whose elements the shards do not hold exactly once each. Empty
/// if there is none. Expands the ranges of one parameter at a time, so the files' sizes, which
/// bound their number, must be those of the manifest.
std::string coverage_problem(const Manifest& manifest);

}  // namespace kzero::checkpoint

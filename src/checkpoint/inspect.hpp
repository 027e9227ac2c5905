// Describes checkpoints to people: their contents and their damage. Needs no other rank.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/format/manifest.hpp"

namespace kzero::checkpoint {

enum class Extent {
  brief,
  tensors,  // also a line for each shard file and for each tensor
};

/// The names of all arrays of an optimizer's state, for messages: "master, first_moment, rows of
/// its rows".
std::string names_of(const param::StateArrays& arrays, const param::ReducedArrays& reduced);

/// Returns lines of text with the step, tokens, grid and parameters of a checkpoint, or of the
/// newest readable one in a folder of checkpoints. Reads manifests only. Throws Error(files) if
/// there is none. `parameters_of` as for newest() (search.hpp).
std::string describe(const std::filesystem::path& path, const ParametersOf& parameters_of,
                     Extent extent = Extent::brief);

/// Returns every problem of a checkpoint, or of all in a folder of checkpoints: one message per
/// file or dataset. Reads every byte. Throws Error(files) if `path` has none.
std::vector<std::string> verify(const std::filesystem::path& path,
                                const ParametersOf& parameters_of);

}  // namespace kzero::checkpoint

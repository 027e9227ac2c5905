// Recognises token files that are not of the deck's data.format: reading one as plain bytes would
// train a model of the file's encoding, without any error. Knows magic numbers only.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace kzero::data {

/// What a file with these first bytes looks like and what to set or do instead, as a phrase that
/// follows "looks like "; empty for a file that looks like no token file. Tokens of Megatron-LM
/// have no magic number: they are known by the index file of the same stem in the same folder.
std::string foreign_format(const std::filesystem::path& path, std::span<const std::byte> head);

}  // namespace kzero::data

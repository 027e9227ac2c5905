// Recognizes token files of formats other than the deck's data.format. Read as plain bytes, such a
// file would train a model of its encoding without any error. Only magic numbers are examined.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "deck/config.hpp"

namespace kzero::data {

/// Describes a file by its first bytes and tells what to set or do instead, as a phrase that
/// follows "looks like ". Empty for a file that does not look like a token file. Tokens of
/// Megatron-LM have no magic number: they are recognized by the index file of the same stem in the
/// same folder, unless "megatron" is the deck's `format`.
std::string foreign_format(const std::filesystem::path& path, std::span<const std::byte> head,
                           deck::DataFormat format);

}  // namespace kzero::data

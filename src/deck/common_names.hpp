// Names that other training programs give to the keys of a deck: nanoGPT, Hugging Face,
// Megatron-LM, DeepSpeed. They serve error messages alone; a deck accepts its own names only.
#pragma once

#include <string_view>

namespace kzero::deck {

/// The path of the key that others call `name`, whatever its case and with '-' for '_'; empty if
/// none does. A path of this program's own is no such name.
std::string_view path_of_common_name(std::string_view name);

}  // namespace kzero::deck

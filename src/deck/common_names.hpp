// Names that other training programs (nanoGPT, Hugging Face, Megatron-LM, DeepSpeed) use for the
// keys of a deck. They are used only in error messages; a deck accepts only its own names.
#pragma once

#include <string_view>

namespace kzero::deck {

/// The path of the key that other programs call `name`, ignoring case and with '-' equal to '_'.
/// Empty if there is none. kzero's own paths are not such names.
std::string_view path_of_common_name(std::string_view name);

}  // namespace kzero::deck

// Names that other programs (transformers, llama.cpp, vLLM, torchrun, Slurm) use for options of
// kzero. They are used only in error messages; a command accepts only its own names.
#pragma once

#include <string>
#include <vector>

namespace kzero::app {

/// Returns the option among `known`, each with its dashes, that other programs call `option`;
/// dashes and underscores are alike. Empty if there is none.
std::string option_elsewhere(const std::string& option, const std::vector<std::string>& known);

/// Returns the one option among `known` that begins with `option`. Empty if there is none or
/// several.
std::string option_beginning(const std::string& option, const std::vector<std::string>& known);

}  // namespace kzero::app

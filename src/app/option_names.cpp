#include "app/option_names.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>

namespace kzero::app {

namespace {

struct Names {
  std::string_view option;
  const char* elsewhere;  // without dashes at the beginning, separated by blanks
};

// A name may mean options of several commands, for example memory.
constexpr Names common_names[] = {
    {"--batch", "batch_size max_batch_size"},
    {"--dtype", "outtype torch_dtype precision"},
    {"--ema", "average"},
    {"--fit", "memory gpu_memory max_memory mem"},
    {"--json", "output_format"},
    {"--max-tokens", "max_new_tokens max_length n_predict num_tokens length n"},
    {"--merge", "merge_and_unload merge_lora"},
    {"--nodes", "nnodes num_nodes N"},
    {"--precision", "dtype torch_dtype"},
    {"--prompts", "file prompt_file input_file"},
    {"--ranks", "np nproc nproc_per_node num_processes world_size gpus num_gpus ntasks n"},
    {"--shard-size", "max_shard_size"},
    {"--stop", "stop_strings stop_sequences reverse_prompt r"},
    {"--temperature", "do_sample greedy t"},
    {"--tensor", "tp tp_size tensor_parallel tensor_parallel_size tensor_model_parallel_size"},
    {"--tensors", "parameters weights"},
    {"--tokenizer", "vocab tokenizer_path tokenizer_name"},
    {"--verbose", "debug log_level"},
    {"--verify", "check checksums"},
};

std::string without_dashes(const std::string& option) {
  std::string plain = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  std::ranges::replace(plain, '-', '_');
  return plain;
}

}  // namespace

std::string option_elsewhere(const std::string& option, const std::vector<std::string>& known) {
  const std::string plain = without_dashes(option);
  for (const Names& names : common_names) {
    if (std::ranges::find(known, names.option) == known.end()) continue;
    std::istringstream words(names.elsewhere);
    for (std::string word; words >> word;) {
      if (word == plain) return std::string(names.option);
    }
  }
  return "";
}

std::string option_beginning(const std::string& option, const std::vector<std::string>& known) {
  std::string found;
  for (const std::string& name : known) {
    if (!name.starts_with(option)) continue;
    if (!found.empty()) return "";
    found = name;
  }
  return found;
}

}  // namespace kzero::app

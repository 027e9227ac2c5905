#include "convert/tokenizer_files.hpp"

#include "base/error.hpp"
#include "base/printable.hpp"
#include "convert/weight_files.hpp"

namespace kzero::convert {

namespace {

namespace fs = std::filesystem;

constexpr const char* file_names[] = {
    tokenizer_name, "tokenizer_config.json", "special_tokens_map.json", "vocab.json",
    "merges.txt",   "tokenizer.model",       "added_tokens.json",       "chat_template.jinja"};

/// The folder of a path or pattern.
fs::path folder_of_data(const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

}  // namespace

fs::path find_tokenizer(const std::string& given, const fs::path& folder, const deck::Data& data) {
  if (!given.empty()) {
    std::error_code ignored;
    const fs::path file =
        fs::is_directory(given, ignored) ? fs::path(given) / tokenizer_name : fs::path(given);
    KZERO_REQUIRE(is_there(file), ExitCode::files, "--tokenizer: {} does not exist",
                  printable(file.string()));
    return file;
  }
  if (is_there(folder / tokenizer_name)) return folder / tokenizer_name;
  for (const std::string& file : data.files) {
    const fs::path beside = folder_of_data(file) / tokenizer_name;
    if (is_there(beside)) return beside;
  }
  return {};
}

std::vector<fs::path> tokenizer_files(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const char* name : file_names)
    if (is_there(folder / name)) found.push_back(folder / name);
  return found;
}

}  // namespace kzero::convert

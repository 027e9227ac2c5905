#include "convert/origin.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "convert/architecture.hpp"
#include "convert/json_file.hpp"
#include "convert/tokenizer_files.hpp"
#include "convert/weight_files.hpp"
#include "deck/reader.hpp"

namespace kzero::convert {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// The folder itself, or the folder that contains the file.
fs::path folder_at(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return path;
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// An id is an integer; Llama 3 has lists of them.
bool is_id(const Json& value) {
  return value.is_number_integer() ||
         (value.is_array() &&
          std::ranges::all_of(value, [](const Json& item) { return item.is_number_integer(); }));
}

Origin read_origin(const fs::path& folder) {
  Origin origin;
  const ConfigText config = load_config(folder);
  const Json json = json_object(config.file, config.text);
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    const auto found = json.find(key);
    if (found != json.end() && is_id(*found)) origin.token_ids[key] = *found;
  }
  origin.tokenizer = tokenizer_files(folder);
  return origin;
}

/// Throws Error(files) if the tokenizer cannot be the model's.
void take_tokenizer(const fs::path& file, Index vocab, Origin& origin) {
  KZERO_REQUIRE(file.filename() == tokenizer_name, ExitCode::files,
                "{}: programs look for a tokenizer by the name {}; rename it",
                printable(file.string()), tokenizer_name);
  const TokenizerFacts facts = read_tokenizer_facts(file);
  KZERO_REQUIRE(facts.tokens <= vocab, ExitCode::files,
                "{}: has tokens up to {}, but model.vocab = {} allows 0 to {}: it is the tokenizer "
                "of another model",
                printable(file.string()), facts.tokens - 1, vocab, vocab - 1);
  origin.tokenizer = tokenizer_files(folder_at(file));
  origin.token_ids.update(facts.token_ids);
}

}  // namespace

void add_tokenizer(Origin& origin, const std::string& deck, const std::string& given) {
  if (given.empty() && !origin.tokenizer.empty()) return;
  const deck::Config config = deck::read({"the checkpoint's deck", deck}, {});
  const fs::path file = find_tokenizer(given, {}, config.data);
  if (file.empty()) return;
  try {
    take_tokenizer(file, config.model.vocab, origin);
    origin.note.clear();
  } catch (const Error& error) {
    if (!given.empty()) throw;
    origin.note = fmt::format("no tokenizer: {}", error.what());
  }
}

Origin find_origin(const std::string& deck) {
  std::string problem;
  try {
    const deck::Model model = deck::read({"the checkpoint's deck", deck}, {}).model;
    for (const std::string& path : {model.initial, model.config}) {
      if (path.empty()) continue;
      const fs::path folder = folder_at(path);
      if (is_there(folder / config_name)) return read_origin(folder);
      if (problem.empty())
        problem = fmt::format("there is no {} in {}", config_name, folder.string());
    }
  } catch (const Error& error) {
    problem = error.what();
  }
  Origin none;
  if (!problem.empty())
    none.note =
        fmt::format("no tokenizer and no token ids of the first weights: {}", printable(problem));
  return none;
}

}  // namespace kzero::convert

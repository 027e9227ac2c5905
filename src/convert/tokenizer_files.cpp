#include "convert/tokenizer_files.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "convert/json_file.hpp"
#include "convert/model_file.hpp"
#include "convert/weight_files.hpp"

namespace kzero::convert {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr Index most_tokenizer_bytes = Index{64}
                                       << 20;  // per file; vocabularies of 250 000 tokens have 17

constexpr const char* file_names[] = {
    tokenizer_name, "tokenizer_config.json", "special_tokens_map.json", "vocab.json",
    "merges.txt",   "tokenizer.model",       "added_tokens.json",       "chat_template.jinja"};

/// The folder of a path or pattern.
fs::path parent_of(const fs::path& file) {
  const fs::path folder = file.parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

}  // namespace

fs::path find_tokenizer(const std::string& given, const fs::path& folder, const deck::Data& data) {
  if (!given.empty()) {
    std::error_code ignored;
    fs::path file =
        fs::is_directory(given, ignored) ? model_file(given, tokenizer_name) : fs::path(given);
    KZERO_REQUIRE(is_there(file), ExitCode::files, "--tokenizer: {} does not exist",
                  printable(file.string()));
    return file;
  }
  if (!folder.empty() && is_there(folder / tokenizer_name))
    return model_file(folder, tokenizer_name);
  if (data.format == deck::DataFormat::bytes) return {};  // a token is a byte
  std::vector<std::string> files = data.files;
  for (const deck::BlendSource& source : data.blend)
    files.insert(files.end(), source.files.begin(), source.files.end());
  for (const std::string& file : files) {
    if (is_there(parent_of(file) / tokenizer_name))
      return model_file(parent_of(file), tokenizer_name);
  }
  return {};
}

TokenizerFacts read_tokenizer_facts(const fs::path& tokenizer) {
  const Json json = read_json_object(tokenizer, most_tokenizer_bytes);
  TokenizerFacts facts;
  std::map<std::string, Index> ids;
  try {
    for (const auto& [text, id] : json.at("model").at("vocab").items())
      facts.tokens = std::max(facts.tokens, id.get<Index>() + 1);
    for (const Json& added : json.value("added_tokens", Json::array())) {
      ids[added.at("content")] = added.at("id").get<Index>();
      facts.tokens = std::max(facts.tokens, added.at("id").get<Index>() + 1);
    }
  } catch (const Json::exception&) {
    fail(ExitCode::files, "{}: is not a Hugging Face tokenizer with model.vocab and added_tokens",
         printable(tokenizer.string()));
  }
  const fs::path configuration = model_file(parent_of(tokenizer), "tokenizer_config.json");
  if (!is_there(configuration)) return facts;
  const Json config = read_json_object(configuration, most_tokenizer_bytes);
  for (const std::string name : {"bos_token", "eos_token", "pad_token"}) {
    const auto token = config.find(name);
    if (token == config.end()) continue;
    const Json& text = token->is_object() ? token->value("content", Json()) : *token;
    const auto id = text.is_string() ? ids.find(text.get<std::string>()) : ids.end();
    if (id != ids.end()) facts.token_ids[name + "_id"] = id->second;
  }
  return facts;
}

std::vector<fs::path> tokenizer_files(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const char* name : file_names)
    if (is_there(folder / name)) found.push_back(model_file(folder, name));
  return found;
}

}  // namespace kzero::convert

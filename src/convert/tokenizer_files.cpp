#include "convert/tokenizer_files.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/printable.hpp"
#include "convert/model_file.hpp"
#include "convert/weight_files.hpp"

namespace kzero::convert {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* configuration_name = "tokenizer_config.json";
constexpr const char* file_names[] = {
    tokenizer_name,        "special_tokens_map.json", "vocab.json",        "merges.txt",
    configuration_name,    "tokenizer.model",         "added_tokens.json", "tekken.json",
    "chat_template.jinja", "chat_template.json",      chat_parts_name};

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

TokenizerFacts tokenizer_facts(const checkpoint::Origin& origin, const std::string& shown) {
  TokenizerFacts facts;
  std::map<std::string, Index> ids;
  const std::string* tokenizer = origin.find(tokenizer_name);
  if (tokenizer == nullptr) return facts;
  const Json json = json_object(fs::path(shown) / tokenizer_name, *tokenizer);
  try {
    for (const auto& [text, id] : json.at("model").at("vocab").items())
      facts.tokens = std::max(facts.tokens, id.get<Index>() + 1);
    for (const Json& added : json.value("added_tokens", Json::array())) {
      ids[added.at("content")] = added.at("id").get<Index>();
      facts.tokens = std::max(facts.tokens, added.at("id").get<Index>() + 1);
    }
  } catch (const Json::exception&) {
    fail(ExitCode::files, "{}: is not a Hugging Face tokenizer with model.vocab and added_tokens",
         printable((fs::path(shown) / tokenizer_name).string()));
  }
  const std::string* configuration = origin.find(configuration_name);
  if (configuration == nullptr) return facts;
  const Json config = json_object(fs::path(shown) / configuration_name, *configuration);
  for (const std::string name : {"bos_token", "eos_token", "pad_token"}) {
    const auto token = config.find(name);
    if (token == config.end()) continue;
    const Json& text = token->is_object() ? token->value("content", Json()) : *token;
    const auto id = text.is_string() ? ids.find(text.get<std::string>()) : ids.end();
    if (id != ids.end()) facts.token_ids[name + "_id"] = id->second;
  }
  return facts;
}

std::map<Index, std::string> token_texts(const checkpoint::Origin& origin) {
  std::map<Index, std::string> texts;
  const std::string* tokenizer = origin.find(tokenizer_name);
  if (tokenizer == nullptr) return texts;
  const Json json = json_object(tokenizer_name, *tokenizer);
  try {
    for (const auto& [text, id] : json.at("model").at("vocab").items()) texts[id] = text;
    for (const Json& added : json.value("added_tokens", Json::array()))
      texts[added.at("id")] = added.at("content");
  } catch (const Json::exception&) {
    fail(ExitCode::files, "{}: is not a Hugging Face tokenizer with model.vocab and added_tokens",
         tokenizer_name);
  }
  return texts;
}

std::vector<checkpoint::OriginFile> tokenizer_files(const fs::path& folder) {
  std::vector<std::string> names(std::begin(file_names), std::end(file_names));
  std::error_code error;
  fs::directory_iterator templates(model_file(folder, checkpoint::templates_name), error), end;
  for (; !error && templates != end; templates.increment(error)) {
    const fs::path name = templates->path().filename();
    if (name.extension() == ".jinja") names.push_back(checkpoint::templates_name / name);
  }
  std::vector<checkpoint::OriginFile> found;
  for (const std::string& name : names) {
    if (is_there(folder / name))
      found.push_back(
          {name, load_file(model_file(folder, name), checkpoint::max_origin_file_bytes)});
  }
  std::ranges::sort(found, {}, &checkpoint::OriginFile::name);
  return found;
}

}  // namespace kzero::convert

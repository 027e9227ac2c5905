#include "convert/origin.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/printable.hpp"
#include "convert/model_file.hpp"
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

/// Reads the files that describe the model.
Origin read_model_files(const fs::path& folder) {
  Origin origin;
  for (const char* name : {config_name, generation_name}) {
    const fs::path path = model_file(folder, name);
    if (!is_there(path)) continue;
    origin.files.push_back({name, load_file(path, max_config_bytes)});
    json_object(path, origin.files.back().bytes);
  }
  return origin;
}

void replace_tokenizer(Origin& origin, std::vector<checkpoint::OriginFile> files) {
  std::erase_if(origin.files, [](const checkpoint::OriginFile& file) {
    return !checkpoint::is_of_model(file.name);
  });
  std::ranges::move(files, std::back_inserter(origin.files));
  std::ranges::sort(origin.files, {}, &checkpoint::OriginFile::name);
}

/// Throws Error(files) if the tokenizer in `folder` cannot be the model's.
TokenizerFacts fitting_facts(const Origin& files, const fs::path& folder, Index vocab) {
  TokenizerFacts facts = tokenizer_facts(files, folder.string());
  KZERO_REQUIRE(facts.tokens <= vocab, ExitCode::files,
                "{}: has tokens up to {}, but model.vocab = {} allows 0 to {}: it is the tokenizer "
                "of another model",
                printable((folder / tokenizer_name).string()), facts.tokens - 1, vocab, vocab - 1);
  return facts;
}

/// Sets ids in the files that describe the model.
void set_token_ids(Origin& origin, const Json& ids) {
  for (const char* name : {config_name, generation_name}) {
    std::string* text = origin.find(name);
    if (text == nullptr || ids.empty()) continue;
    Json object = json_object(name, *text);
    object.update(ids);
    *text = object.dump(2) + '\n';
  }
}

/// Adds the files of the same tokenizer in the folder of the data that the model's folder lacks.
/// The parts of a chat template are those of the conversations that the model learns.
void add_files(Origin& origin, std::vector<checkpoint::OriginFile> files) {
  for (checkpoint::OriginFile& file : files) {
    std::string* own = origin.find(file.name);
    if (own == nullptr) {
      origin.files.push_back(std::move(file));
    } else if (file.name == chat_parts_name) {
      *own = std::move(file.bytes);
    }
  }
}

/// Uses what prepare.py has written about the end of the data's answers, if it has.
void take_ends(Origin& origin, const fs::path& folder) {
  const fs::path path = model_file(folder, generation_name);
  if (!is_there(path)) return;
  const std::string text = load_file(path, max_config_bytes);
  const Json object = json_object(path, text);
  const auto ids = object.find("eos_token_id");
  if (ids != object.end() && is_id(*ids)) set_token_ids(origin, {{"eos_token_id", *ids}});
  if (std::string* own = origin.find(generation_name)) {
    *own = text;
  } else {
    origin.files.push_back({generation_name, text});
  }
}

/// What to say of a tokenizer of the data that gives numbers of the model's tokens to other texts.
/// New tokens do not count.
std::string note_on_tokenizers(const Origin& of_model, const Origin& of_data,
                               const fs::path& folder) {
  const auto there = token_texts(of_model), here = token_texts(of_data);
  const auto is_other = [&](const auto& entry) {
    const auto found = there.find(entry.first);
    return found != there.end() && found->second != entry.second;
  };
  const auto others = std::ranges::count_if(here, is_other);
  if (others == 0) return "";
  return fmt::format(
      "{} tokens of {} have other texts in the tokenizer of model.initial: prepare the data with "
      "the model's tokenizer unless the model is to learn another one",
      others, printable((folder / tokenizer_name).string()));
}

/// Uses the tokenizer in the folder of the training's files unless it is the one of the model.
void add_tokenizer_of_data(Origin& origin, const deck::Config& config) {
  const fs::path file = find_tokenizer("", {}, config.data);
  if (file.empty()) return;
  const fs::path folder = folder_at(file);
  try {
    Origin of_data{.files = tokenizer_files(folder)};
    const std::string* own = origin.find(tokenizer_name);
    if (own != nullptr && *of_data.find(tokenizer_name) == *own) {
      add_files(origin, std::move(of_data.files));
    } else {
      const TokenizerFacts facts = fitting_facts(of_data, folder, config.model.vocab);
      const bool had_tokenizer = own != nullptr;
      if (had_tokenizer && !config.model.initial.empty())
        origin.note = note_on_tokenizers(origin, of_data, folder);
      replace_tokenizer(origin, std::move(of_data.files));
      // Ids of a config.json without a tokenizer are those of another vocabulary.
      if (!had_tokenizer) set_token_ids(origin, facts.token_ids);
    }
    take_ends(origin, folder);
    std::ranges::sort(origin.files, {}, &checkpoint::OriginFile::name);
  } catch (const Error& error) {
    origin.note = fmt::format("no tokenizer of the data: {}", error.what());
  }
}

}  // namespace

fs::path model_folder(const deck::Model& model, const std::string& weights) {
  for (const std::string& path : {weights, model.initial, model.config}) {
    if (!path.empty() && is_there(folder_at(path) / config_name)) return folder_at(path);
  }
  return {};
}

Origin gather_origin(const deck::Config& config, const std::string& weights) {
  const fs::path folder = model_folder(config.model, weights);
  Origin origin;
  if (!folder.empty()) origin = read_model_files(folder);
  const bool is_training = weights.empty();
  const bool has_bytes = config.data.format == deck::DataFormat::bytes;
  if (is_training && has_bytes) return origin;
  if (!folder.empty()) replace_tokenizer(origin, tokenizer_files(folder));
  if (is_training || origin.find(tokenizer_name) == nullptr) add_tokenizer_of_data(origin, config);
  return origin;
}

Origin origin_of(const checkpoint::Found& found) {
  const fs::path folder = checkpoint::origin_folder(found.path);
  if (!folder.empty()) return checkpoint::read_origin(folder);
  try {
    const deck::Config config = deck::read({"the checkpoint's deck", found.manifest.deck}, {});
    Origin origin = gather_origin(config);
    const bool has_source = !config.model.initial.empty() || !config.model.config.empty();
    if (has_source && origin.find(config_name) == nullptr)
      origin.note = fmt::format(
          "there is no {} in the folders of model.initial = \"{}\" and "
          "model.config = \"{}\", so other keys and files of the model that "
          "was trained are left out",
          config_name, printable(config.model.initial), printable(config.model.config));
    return origin;
  } catch (const Error& error) {
    return {.note = fmt::format("without keys and files of the model that was trained: {}",
                                printable(error.what()))};
  }
}

void set_tokenizer(Origin& origin, const std::string& given, Index vocab) {
  const fs::path file = find_tokenizer(given, {}, {});
  KZERO_REQUIRE(file.filename() == tokenizer_name, ExitCode::files,
                "{}: programs look for a tokenizer by the name {}; rename it",
                printable(file.string()), tokenizer_name);
  const fs::path folder = folder_at(file);
  Origin found{.files = tokenizer_files(folder)};
  const TokenizerFacts facts = fitting_facts(found, folder, vocab);
  replace_tokenizer(origin, std::move(found.files));
  set_token_ids(origin, facts.token_ids);
}

Json token_ids(const Origin& origin) {
  Json ids = Json::object();
  if (origin.find(config_name) == nullptr)
    ids = tokenizer_facts(origin, checkpoint::origin_name).token_ids;
  for (const char* name : {generation_name, config_name}) {
    const std::string* text = origin.find(name);
    if (text == nullptr) continue;
    const Json object = json_object(name, *text);
    for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
      const auto found = object.find(key);
      if (found != object.end() && is_id(*found)) ids[key] = *found;
    }
  }
  return ids;
}

}  // namespace kzero::convert

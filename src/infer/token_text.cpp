#include "infer/token_text.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "convert/model_file.hpp"
#include "convert/tokenizer_files.hpp"
#include "convert/weight_files.hpp"
#include "infer/chat_parts.hpp"
#include "tokenizer/tokenizer.hpp"

namespace kzero::infer {

namespace {

namespace fs = std::filesystem;

class ByteText : public TokenText {
 public:
  ByteText() {
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<char>(i);
  }
  std::vector<Token> encode(std::string_view text) const override {
    std::vector<Token> tokens;
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }
  std::string_view bytes(Token token) const override {
    if (token >= size()) return {};
    return {bytes_.data() + token, 1};
  }
  Index size() const override { return static_cast<Index>(bytes_.size()); }
  bool is_bytes() const override { return true; }
  const std::vector<Token>& end_tokens() const override { return none_; }

 private:
  std::array<char, 256> bytes_{};
  std::vector<Token> none_;
};

class TokenizerText : public TokenText {
 public:
  TokenizerText(const fs::path& file, std::vector<Token> end_tokens, SpecialTokens special)
      : tokenizer_(file.string()), end_tokens_(std::move(end_tokens)), special_(special) {}

  std::vector<Token> encode(std::string_view text) const override {
    return special_ == SpecialTokens::added ? tokenizer_.encode_framed(text)
                                            : tokenizer_.encode(text);
  }
  // Ids may have gaps, and a model's vocabulary is often rounded up beyond the tokenizer's.
  std::string_view bytes(Token token) const override {
    try {
      return tokenizer_.bytes(token);
    } catch (const Error&) {
      return {};
    }
  }
  Index size() const override { return tokenizer_.size(); }
  bool is_bytes() const override { return false; }
  const std::vector<Token>& end_tokens() const override { return end_tokens_; }

  void add_end_token(std::string_view content) {
    if (const auto token = tokenizer_.find(content)) end_tokens_.push_back(*token);
  }

 private:
  tokenizer::Tokenizer tokenizer_;
  std::vector<Token> end_tokens_;
  SpecialTokens special_;
};

/// The JSON object of a file in a model's folder; an empty one if the file does not exist.
nlohmann::json object_of(const fs::path& folder, const std::string& name) {
  constexpr Index max_bytes = Index{64} << 20;  // as of a tokenizer's files
  const fs::path file = convert::model_file(folder, name);
  if (!convert::is_there(file)) return nlohmann::json::object();
  return convert::read_json_object(file, max_bytes);
}

/// eos_token_id: a number or a list of numbers.
std::vector<Token> end_ids(const nlohmann::json& object, const fs::path& file) {
  std::vector<Token> ids;
  const auto found = object.find("eos_token_id");
  if (found == object.end() || found->is_null()) return ids;
  const nlohmann::json list = found->is_array() ? *found : nlohmann::json::array({*found});
  for (const nlohmann::json& id : list) {
    KZERO_REQUIRE(id.is_number_unsigned() && id < (1U << 31U), ExitCode::files,
                  "{}: eos_token_id must be a token or a list of tokens, found {}",
                  printable(file.string()), json_shown(*found));
    ids.push_back(id.get<Token>());
  }
  return ids;
}

/// eos_token: a text or an object with its content; empty if there is none.
std::string end_content(const nlohmann::json& object) {
  const auto found = object.find("eos_token");
  if (found == object.end()) return {};
  if (found->is_string()) return found->get<std::string>();
  const auto content = found->is_object() ? found->find("content") : object.end();
  return found->is_object() && content != found->end() && content->is_string()
             ? content->get<std::string>()
             : std::string();
}

std::unique_ptr<TokenText> open_tokenizer(const fs::path& file, SpecialTokens special) {
  const fs::path folder = file.parent_path();
  std::vector<Token> ids;
  for (const char* name : {"generation_config.json", "config.json"}) {
    if (ids.empty()) ids = end_ids(object_of(folder, name), folder / name);
  }
  auto text = std::make_unique<TokenizerText>(file, ids, special);
  if (ids.empty()) {
    const std::string content = end_content(object_of(folder, "tokenizer_config.json"));
    if (!content.empty()) text->add_end_token(content);
  }
  return text;
}

fs::path tokenizer_file(const Source& source, const std::string& given) {
  fs::path found = find_tokenizer(source, given);
  KZERO_REQUIRE(
      !found.empty(), ExitCode::files,
      "{}: no tokenizer.json was found in the folders of the model and its data; name one "
      "with --tokenizer FILE. If the model's tokens are bytes, generate has --tokenizer bytes, and "
      "evaluate has --format bytes",
      printable(source.path));
  return found;
}

}  // namespace

fs::path find_tokenizer(const Source& source, const std::string& given) {
  const deck::Data& data = source.config.data;
  fs::path found = convert::find_tokenizer(given, source.origin, data);
  if (found.empty() && !source.base.empty() && data.format != deck::DataFormat::bytes)
    found = convert::find_tokenizer("", source.base, data);
  return found;
}

fs::path chat_parts_file(const Source& source, const std::string& given) {
  return convert::model_file(tokenizer_file(source, given).parent_path(), convert::chat_parts_name);
}

bool has_tokenizer(const Source& source) {
  return !source.origin.empty() && convert::is_there(source.origin / convert::tokenizer_name);
}

std::unique_ptr<TokenText> open_token_text(const Source& source, const std::string& given,
                                           SpecialTokens special) {
  const bool is_bytes =
      given == bytes_name || (given.empty() && source.is_checkpoint && !has_tokenizer(source) &&
                              source.config.data.format == deck::DataFormat::bytes);
  std::unique_ptr<TokenText> text;
  if (is_bytes) {
    text = std::make_unique<ByteText>();
  } else {
    text = open_tokenizer(tokenizer_file(source, given), special);
  }
  KZERO_REQUIRE(
      text->size() <= source.config.model.vocab, ExitCode::files,
      "{} has {} tokens, but {} has a vocabulary of {}: it is not the model's tokenizer, or "
      "has new tokens, for which a training with model.vocab = {} adds rows",
      is_bytes ? "bytes" : printable(tokenizer_file(source, given).string()), text->size(),
      printable(source.path), source.config.model.vocab, text->size());
  return text;
}

}  // namespace kzero::infer

#include "tokenizer/definition.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "tokenizer/byte_alphabet.hpp"

namespace kzero::tokenizer {

namespace {

using Json = nlohmann::json;

/// Reads one file; `definition` is what has been read so far.
class DefinitionReader {
 public:
  explicit DefinitionReader(const std::string& path) : path_(path) {}

  Definition read(std::string_view text) {
    const Json file = parse_json(text);
    KZERO_REQUIRE(file.is_object(), ExitCode::files, "{}: is not a JSON object", path_);
    allow_keys(file, "",
               {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                "post_processor", "decoder", "model"});
    allow(at(file, "version"), "version", {nullptr, "1.0"});
    allow(at(file, "truncation"), "truncation", {nullptr});
    allow(at(file, "padding"), "padding", {nullptr});
    read_normalizer(at(file, "normalizer"));
    read_pre_tokenizer(at(file, "pre_tokenizer"));
    read_decoder(at(file, "decoder"));  // post_processor only adds special tokens, and offsets
    read_model(at(file, "model"));
    read_added(at(file, "added_tokens"));
    return std::move(definition_);
  }

 private:
  static const Json& at(const Json& object, const char* key) {
    static const Json missing;
    const auto found = object.find(key);
    return found == object.end() ? missing : *found;
  }

  [[noreturn]] void refuse(const std::string& key, const Json& value,
                           const std::string& what) const {
    fail(ExitCode::files, "{}: {} is {}, but {}", path_, printable(key), json_shown(value), what);
  }

  void allow(const Json& value, const std::string& key, std::initializer_list<Json> allowed) const {
    if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return;
    std::string names;
    for (const Json& one : allowed) names += (names.empty() ? "" : " or ") + one.dump();
    refuse(key, value, "kzero reads only " + names + " there");
  }

  void allow_keys(const Json& object, const std::string& prefix,
                  std::initializer_list<std::string_view> known) const {
    for (const auto& item : object.items()) {
      if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
      refuse(prefix + item.key(), item.value(), "kzero knows no such rule");
    }
  }

  const std::string& text_of(const Json& value, const std::string& key) const {
    if (!value.is_string()) refuse(key, value, "a text is needed there");
    return value.get_ref<const std::string&>();
  }

  bool flag_of(const Json& object, const std::string& prefix, const char* key, bool usual) const {
    const Json& value = at(object, key);
    if (value.is_null()) return usual;
    if (!value.is_boolean()) refuse(prefix + key, value, "true or false is needed there");
    return value.get<bool>();
  }

  Token id_of(const Json& value, const std::string& key) const {
    constexpr std::uint64_t most = 2'000'000;  // a table has an entry for each id up to the largest
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most) {
      refuse(key, value, fmt::format("an id is a whole number from 0 to {}", most));
    }
    return value.get<Token>();
  }

  void read_normalizer(const Json& value) {
    if (value.is_null()) return;
    allow(value, "normalizer", {nullptr, Json{{"type", "NFC"}}});
    definition_.is_composed = true;
  }

  void read_byte_level(const Json& value, const std::string& prefix, bool uses_pattern) {
    allow_keys(value, prefix, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    if (flag_of(value, prefix, "use_regex", true) != uses_pattern) {
      refuse(prefix + "use_regex", at(value, "use_regex"),
             "kzero reads one ByteLevel with the pattern of GPT-2 there, or a Split with another "
             "pattern and a ByteLevel without one");
    }
    definition_.has_prefix_space = flag_of(value, prefix, "add_prefix_space", true);
    if (definition_.has_prefix_space && !uses_pattern) {
      refuse(prefix + "add_prefix_space", true, "only false is read after a Split");
    }
  }

  void read_pre_tokenizer(const Json& value) {
    const std::string key = "pre_tokenizer";
    if (value.is_object() && at(value, "type") == "ByteLevel") {
      read_byte_level(value, key + ".", true);
      return;
    }
    const Json& list = value.is_object() ? at(value, "pretokenizers") : value;
    if (!value.is_object() || at(value, "type") != "Sequence" || !list.is_array() ||
        list.size() != 2 || !list[0].is_object() || !list[1].is_object()) {
      refuse(key, value,
             "kzero reads only a ByteLevel there, or a Sequence of Split and ByteLevel");
    }
    allow_keys(value, key + ".", {"type", "pretokenizers"});
    read_split(list[0], key + ".pretokenizers[0].");
    allow(at(list[1], "type"), key + ".pretokenizers[1].type", {"ByteLevel"});
    read_byte_level(list[1], key + ".pretokenizers[1].", false);
  }

  void read_split(const Json& value, const std::string& prefix) {
    allow_keys(value, prefix, {"type", "pattern", "behavior", "invert"});
    allow(at(value, "type"), prefix + "type", {"Split"});
    allow(at(value, "behavior"), prefix + "behavior", {"Isolated"});
    allow(at(value, "invert"), prefix + "invert", {false});
    const Json& pattern = at(value, "pattern");
    if (pattern == Json{{"Regex", llama3_pattern}}) {
      definition_.split = Split::llama3;
    } else if (pattern == Json{{"Regex", qwen2_pattern}}) {
      definition_.split = Split::qwen2;
    } else {
      refuse(prefix + "pattern", pattern, "kzero has only the patterns of Llama 3 and Qwen 2");
    }
  }

  void read_decoder(const Json& value) const {
    if (!value.is_object() || at(value, "type") != "ByteLevel") {
      refuse("decoder", value, "kzero reads only a ByteLevel there");
    }
  }

  void read_model(const Json& model) {
    if (!model.is_object()) refuse("model", model, "an object is needed there");
    allow_keys(model, "model.",
               {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
    allow(at(model, "type"), "model.type", {nullptr, "BPE"});  // old files have no type
    allow(at(model, "dropout"), "model.dropout", {nullptr, 0.0});
    allow(at(model, "byte_fallback"), "model.byte_fallback", {nullptr, false});
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      allow(at(model, key), std::string("model.") + key, {nullptr, ""});
    }
    // unk_token stands for bytes that the vocabulary lacks; read_vocabulary() wants all of them.
    definition_.takes_whole_words = flag_of(model, "model.", "ignore_merges", false);
    read_vocabulary(at(model, "vocab"));
    read_merges(at(model, "merges"));
  }

  void read_vocabulary(const Json& vocabulary) {
    if (!vocabulary.is_object()) refuse("model.vocab", vocabulary, "an object is needed there");
    std::unordered_map<Token, std::string_view> texts;
    for (const auto& item : vocabulary.items()) {
      const std::string key = "model.vocab." + printable_start(item.key());
      const Token id = id_of(item.value(), key);
      if (item.key().empty()) refuse(key, item.value(), "a token has at least one byte");
      const auto [other, is_new] = texts.emplace(id, item.key());
      if (!is_new) {
        refuse(key, item.value(),
               fmt::format("{} has this id too", printable_start(other->second)));
      }
      const auto bytes = bytes_of_symbols(item.key());
      definition_.vocabulary.push_back({id, bytes.value_or(item.key()), bytes.has_value()});
      ids_.emplace(item.key(), id);
    }
    for (int byte = 0; byte < 256; ++byte) {
      KZERO_REQUIRE(ids_.contains(symbol_of(static_cast<unsigned char>(byte))), ExitCode::files,
                    "{}: model.vocab has no token for byte {}, but kzero needs one for each", path_,
                    byte);
    }
  }

  Token word_id(const std::string& text, const std::string& key, const Json& merge) const {
    const auto found = ids_.find(text);
    if (found == ids_.end()) {
      refuse(key, merge, "model.vocab has no " + json_shown(text));
    }
    return found->second;
  }

  void read_merges(const Json& merges) {
    if (!merges.is_array()) refuse("model.merges", merges, "a list is needed there");
    for (std::size_t i = 0; i < merges.size(); ++i) {
      const Json& merge = merges[i];
      const std::string key = fmt::format("model.merges[{}]", i);
      if (merge.is_string() && merge.get_ref<const std::string&>().starts_with("#version"))
        continue;
      const auto [left, right] = sides(merge, key);
      definition_.merges.push_back({word_id(left, key, merge), word_id(right, key, merge),
                                    word_id(left + right, key, merge)});
    }
  }

  /// The two texts of a merge: a list of two, or, in old files, one text with a space between them.
  std::pair<std::string, std::string> sides(const Json& merge, const std::string& key) const {
    if (merge.is_array() && merge.size() == 2) {
      return {text_of(merge[0], key), text_of(merge[1], key)};
    }
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const std::size_t space = text.find(' ');
      if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
        return {text.substr(0, space), text.substr(space + 1)};
      }
    }
    refuse(key, merge, "a merge is two texts, in a list or with one space between them");
  }

  void read_added(const Json& list) {
    if (list.is_null()) return;
    if (!list.is_array()) refuse("added_tokens", list, "a list is needed there");
    std::unordered_set<std::string> contents;
    auto next = static_cast<Token>(definition_.vocabulary.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string prefix = fmt::format("added_tokens[{}].", i);
      const Json& value = list[i];
      if (!value.is_object())
        refuse(fmt::format("added_tokens[{}]", i), value, "an object is needed");
      allow_keys(value, prefix,
                 {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
      for (const char* key : {"single_word", "lstrip", "rstrip"}) {
        allow(at(value, key), prefix + key, {false});
      }
      AddedToken token{
          id_of(at(value, "id"), prefix + "id"), text_of(at(value, "content"), prefix + "content"),
          flag_of(value, prefix, "special", false), flag_of(value, prefix, "normalized", true)};
      if (token.content.empty() || !contents.insert(token.content).second) {
        refuse(prefix + "content", token.content, "each added token needs a text of its own");
      }
      // The library gives an added token the id of its text in the vocabulary, or the next free
      // one.
      const auto found = ids_.find(token.content);
      const Token expected = found == ids_.end() ? next++ : found->second;
      if (token.id != expected) {
        refuse(prefix + "id", at(value, "id"),
               fmt::format("the tokenizers library reads it as {}", expected));
      }
      check_spelling(token, prefix);
      definition_.added.push_back(std::move(token));
    }
  }

  /// An added token's content is plain text; a vocabulary entry's text represents bytes. The two
  /// must not contradict each other.
  void check_spelling(const AddedToken& token, const std::string& prefix) const {
    if (!ids_.contains(token.content)) return;
    const auto bytes = bytes_of_symbols(token.content);
    if (bytes.has_value() && *bytes != token.content) {
      refuse(prefix + "content", token.content, "in model.vocab this text stands for other bytes");
    }
  }

  const std::string& path_;
  Definition definition_{};
  std::unordered_map<std::string, Token> ids_{};  // by the vocabulary's spelling
};

}  // namespace

Definition read_definition(const std::string& path, std::string_view json) {
  return DefinitionReader(path).read(json);
}

}  // namespace kzero::tokenizer

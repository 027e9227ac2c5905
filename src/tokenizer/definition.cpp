#include "tokenizer/definition.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "tokenizer/rules.hpp"
#include "tokenizer/sections.hpp"
#include "tokenizer/sentence_piece.hpp"
#include "tokenizer/unicode.hpp"

namespace kzero::tokenizer {

namespace {

// The characters that represent bytes in the vocabulary of byte-level BPE (openai/gpt-2,
// src/encoder.py). A printable byte represents itself; the 68 others are U+0100 and following, in
// order.

constexpr std::int32_t first_substitute = 0x100;

constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<std::int32_t, 256> code_of_byte{};
  std::array<std::int16_t, 512> byte_of_code{};  // -1: none
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte_of_code.fill(-1);
  std::int32_t substitute = first_substitute;
  for (int byte = 0; byte < 256; ++byte) {
    const std::int32_t code = stands_for_itself(byte) ? byte : substitute++;
    alphabet.code_of_byte[byte] = code;
    alphabet.byte_of_code[code] = static_cast<std::int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet alphabet = make_alphabet();

/// The character, in UTF-8, that represents a byte.
std::string symbol_of(unsigned char byte) {
  const std::int32_t code = alphabet.code_of_byte[byte];  // below 0x200: two bytes at most
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

/// Converts a text of such characters to bytes; nothing if a character represents no byte.
std::optional<std::string> bytes_of_symbols(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    const Character symbol = character_at(text, at);
    if (symbol.code < 0 || symbol.code >= std::ssize(alphabet.byte_of_code)) return {};
    const std::int16_t byte = alphabet.byte_of_code[symbol.code];
    if (byte < 0) return {};
    bytes += static_cast<char>(byte);
    at = symbol.end;
  }
  return bytes;
}

using Json = Rules::Json;

/// Reads one file; `definition` is what has been read so far.
class DefinitionReader {
 public:
  explicit DefinitionReader(const std::string& path) : rules_(path) {}

  Definition read(std::string_view text) {
    const Json file = parse_json(text);
    KZERO_REQUIRE(file.is_object(), ExitCode::files, "{}: is not a JSON object", rules_.path());
    // truncation and padding shape batches; transformers applies them only if it is asked to.
    rules_.allow_keys(file, "",
                      {"version", "truncation", "padding", "added_tokens", "normalizer",
                       "pre_tokenizer", "post_processor", "decoder", "model"});
    rules_.allow(at(file, "version"), "version", {nullptr, "1.0"});
    if (has_byte_fallback(file)) {
      SentencePiece read = read_sentence_piece(rules_, file);
      definition_.marks = read.marks;
      definition_.steps = std::move(read.steps);
    } else {
      read_normalizer(at(file, "normalizer"));
      definition_.steps = read_pre_tokenizer(rules_, at(file, "pre_tokenizer"));
      read_decoder(at(file, "decoder"));
    }
    read_model(at(file, "model"));
    read_added(at(file, "added_tokens"));
    read_frame(at(file, "post_processor"));
    return std::move(definition_);
  }

 private:
  static const Json& at(const Json& object, const char* key) { return Rules::at(object, key); }

  void read_normalizer(const Json& value) {
    const Json composing{{"type", "NFC"}};
    if (value.is_null() || value == sequence_of({})) return;
    if (value == sequence_of({composing})) {
      definition_.is_composed = true;
      return;
    }
    rules_.allow(value, "normalizer", {nullptr, composing});
    definition_.is_composed = true;
  }

  static Json sequence_of(const std::vector<Json>& normalizers) {
    return {{"type", "Sequence"}, {"normalizers", normalizers}};
  }

  void read_decoder(const Json& value) const {
    if (!value.is_object() || at(value, "type") != "ByteLevel") {
      rules_.refuse("decoder", value, "kzero reads only a ByteLevel there");
    }
  }

  void read_model(const Json& model) {
    if (!model.is_object()) rules_.refuse("model", model, "an object is needed there");
    rules_.allow_keys(
        model, "model.",
        {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
         "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
    rules_.allow(at(model, "type"), "model.type", {nullptr, "BPE"});  // old files have no type
    rules_.allow(at(model, "dropout"), "model.dropout", {nullptr, 0.0});
    rules_.allow(at(model, "byte_fallback"), "model.byte_fallback", {nullptr, false, true});
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      rules_.allow(at(model, key), std::string("model.") + key, {nullptr, ""});
    }
    definition_.takes_whole_words = rules_.flag_of(model, "model.", "ignore_merges", false);
    definition_.joins_unknown = rules_.flag_of(model, "model.", "fuse_unk", false);
    read_vocabulary(at(model, "vocab"));
    read_unknown(at(model, "unk_token"));
    if (definition_.marks) check_byte_pieces();
    read_merges(at(model, "merges"));
  }

  void read_vocabulary(const Json& vocabulary) {
    if (!vocabulary.is_object())
      rules_.refuse("model.vocab", vocabulary, "an object is needed there");
    std::unordered_map<Token, std::string_view> texts;
    for (const auto& item : vocabulary.items()) {
      const std::string key = "model.vocab." + printable_start(item.key());
      const Token id = rules_.id_of(item.value(), key);
      if (item.key().empty()) rules_.refuse(key, item.value(), "a token has at least one byte");
      const auto [other, is_new] = texts.emplace(id, item.key());
      if (!is_new) {
        rules_.refuse(key, item.value(),
                      fmt::format("{} has this id too", printable_start(other->second)));
      }
      if (definition_.marks) {
        definition_.vocabulary.push_back({id, bytes_of_piece(item.key()), true, item.key()});
      } else {
        const auto bytes = bytes_of_symbols(item.key());
        definition_.vocabulary.push_back({id, bytes.value_or(item.key()), bytes.has_value()});
      }
      ids_.emplace(item.key(), id);
    }
  }

  /// With the tokens of all bytes, no text has a part that the vocabulary lacks.
  void check_byte_pieces() const {
    for (int byte = 0; byte < 256; ++byte) {
      const std::string piece = byte_piece(static_cast<unsigned char>(byte));
      if (ids_.contains(piece)) continue;
      rules_.refuse("model.byte_fallback", true, "model.vocab has no " + json_shown(piece));
    }
  }

  /// The token for bytes that the vocabulary lacks. It need not exist if all bytes do.
  void read_unknown(const Json& value) {
    if (value.is_null()) return;
    const auto found = ids_.find(rules_.text_of(value, "model.unk_token"));
    if (definition_.marks) return;  // check_byte_pieces()
    if (found != ids_.end()) {
      definition_.unknown = found->second;
      return;
    }
    for (int byte = 0; byte < 256; ++byte) {
      if (ids_.contains(symbol_of(static_cast<unsigned char>(byte)))) continue;
      rules_.refuse("model.unk_token", value,
                    fmt::format("model.vocab has neither this token nor one for byte {}", byte));
    }
  }

  Token word_id(const std::string& text, const std::string& key, const Json& merge) const {
    const auto found = ids_.find(text);
    if (found == ids_.end()) {
      rules_.refuse(key, merge, "model.vocab has no " + json_shown(text));
    }
    return found->second;
  }

  void read_merges(const Json& merges) {
    if (!merges.is_array()) rules_.refuse("model.merges", merges, "a list is needed there");
    for (std::size_t i = 0; i < merges.size(); ++i) {
      const Json& merge = merges[i];
      const std::string key = fmt::format("model.merges[{}]", i);
      if (merge.is_string() && merge.get_ref<const std::string&>().starts_with("#version"))
        continue;
      const auto [left, right] = sides(merge, key);
      for (const std::string* side : {&left, &right}) {
        if (definition_.marks && byte_of_piece(*side))
          rules_.refuse(key, merge, "kzero merges no " + json_shown(*side) + ", which is a byte");
      }
      definition_.merges.push_back({word_id(left, key, merge), word_id(right, key, merge),
                                    word_id(left + right, key, merge)});
    }
  }

  /// The two texts of a merge: a list of two, or, in old files, one text with a space between them.
  std::pair<std::string, std::string> sides(const Json& merge, const std::string& key) const {
    if (merge.is_array() && merge.size() == 2) {
      return {rules_.text_of(merge[0], key), rules_.text_of(merge[1], key)};
    }
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const std::size_t space = text.find(' ');
      if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
        return {text.substr(0, space), text.substr(space + 1)};
      }
    }
    rules_.refuse(key, merge, "a merge is two texts, in a list or with one space between them");
  }

  void read_added(const Json& list) {
    if (list.is_null()) return;
    if (!list.is_array()) rules_.refuse("added_tokens", list, "a list is needed there");
    std::unordered_set<std::string> contents;
    auto next = static_cast<Token>(definition_.vocabulary.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string prefix = fmt::format("added_tokens[{}].", i);
      const Json& value = list[i];
      if (!value.is_object())
        rules_.refuse(fmt::format("added_tokens[{}]", i), value, "an object is needed");
      rules_.allow_keys(
          value, prefix,
          {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
      for (const char* key : {"single_word", "lstrip", "rstrip"}) {
        rules_.allow(at(value, key), prefix + key, {false, true});
      }
      AddedToken token{rules_.id_of(at(value, "id"), prefix + "id"),
                       rules_.text_of(at(value, "content"), prefix + "content"),
                       rules_.flag_of(value, prefix, "special", false),
                       rules_.flag_of(value, prefix, "normalized", true),
                       at(value, "single_word").get<bool>(),
                       at(value, "lstrip").get<bool>(),
                       at(value, "rstrip").get<bool>()};
      if (token.content.empty() || !contents.insert(token.content).second) {
        rules_.refuse(prefix + "content", token.content,
                      "each added token needs a text of its own");
      }
      // The library gives an added token the id of its text in the vocabulary, or the next free
      // one.
      const auto found = ids_.find(token.content);
      const Token expected = found == ids_.end() ? next++ : found->second;
      if (token.id != expected) {
        rules_.refuse(prefix + "id", at(value, "id"),
                      fmt::format("the tokenizers library reads it as {}", expected));
      }
      check_spelling(token, prefix);
      definition_.added.push_back(std::move(token));
    }
  }

  /// An added token's content is plain text; a vocabulary entry's text represents bytes. The two
  /// must not contradict each other.
  void check_spelling(const AddedToken& token, const std::string& prefix) const {
    if (definition_.marks || !ids_.contains(token.content)) return;
    const auto bytes = bytes_of_symbols(token.content);
    if (bytes.has_value() && *bytes != token.content) {
      rules_.refuse(prefix + "content", token.content,
                    "in model.vocab this text stands for other bytes");
    }
  }

  /// The library would write any id that a post_processor names.
  void read_frame(const Json& value) {
    definition_.frame = read_post_processor(rules_, value);
    const auto is_known = [&](Token id) {
      return std::ranges::find(definition_.vocabulary, id, &VocabularyEntry::id) !=
                 definition_.vocabulary.end() ||
             std::ranges::find(definition_.added, id, &AddedToken::id) != definition_.added.end();
    };
    for (const auto* side : {&definition_.frame.before, &definition_.frame.after}) {
      for (const Token id : *side) {
        if (!is_known(id)) {
          rules_.refuse("post_processor", value,
                        fmt::format("it adds token {}, which the file does not have", id));
        }
      }
    }
  }

  Rules rules_;
  Definition definition_{};
  std::unordered_map<std::string, Token> ids_{};  // by the vocabulary's spelling
};

}  // namespace

Definition read_definition(const std::string& path, std::string_view json) {
  return DefinitionReader(path).read(json);
}

}  // namespace kzero::tokenizer

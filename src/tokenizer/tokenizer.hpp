// Byte-level BPE, or SentencePiece's BPE with bytes, as described by a tokenizer.json of Hugging
// Face's tokenizers library: text to tokens and back. A file with a rule that kzero does not
// reproduce exactly is refused.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/types.hpp"
#include "tokenizer/added_tokens.hpp"
#include "tokenizer/definition.hpp"
#include "tokenizer/merges.hpp"
#include "tokenizer/pieces.hpp"

namespace kzero::tokenizer {

/// All const functions may be called by several threads at once.
class Tokenizer {
 public:
  /// Reads a tokenizer.json, or the one in a folder. Throws Error(files) that names the path and
  /// the first entry that is wrong or not supported.
  explicit Tokenizer(const std::string& path);

  /// Does the same with the text of a file; messages call it `path`.
  Tokenizer(const std::string& path, std::string_view json);

  ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  Tokenizer(Tokenizer&&) = default;
  Tokenizer& operator=(Tokenizer&&) = default;

  /// Returns the tokens of UTF-8 text, identical to the library's encode(text,
  /// add_special_tokens=False): the text of an added token becomes that token, special or not.
  /// Bytes that the vocabulary lacks become its unk_token, or are left out if it names none. Throws
  /// Error(files) that names the offset of the first byte that is not UTF-8.
  std::vector<Token> encode(std::string_view text) const;

  /// encode(), between the tokens that the file's post_processor adds, identical to the library's
  /// encode(text). Tokens with which the text already begins are not added again: a chat template
  /// writes them itself. Throws as encode() does.
  std::vector<Token> encode_framed(std::string_view text) const;

  /// Returns the bytes of the tokens, one after the other. They need not be valid UTF-8, because a
  /// token may end within a character. If the file's decoder strips text, a space at the beginning
  /// is left out. Throws Error(files) for an unknown id.
  std::string decode(std::span<const Token> tokens, bool skip_special = false) const;

  /// The bytes of one token; for an added token, its text. Throws Error(files) for an unknown id.
  std::string_view bytes(Token token) const;

  /// Returns whether decode(tokens, true) leaves the token out. False for an unknown id.
  bool is_special(Token token) const;

  /// One more than the largest id: the smallest model.vocab that can hold all tokens.
  Index size() const { return static_cast<Index>(entries_.size()); }

  /// The token with these bytes, such as "<|endoftext|>", or, where spaces are marked, with this
  /// spelling. Added tokens take precedence.
  std::optional<Token> find(std::string_view content) const;

 private:
  struct Entry {
    std::string bytes;
    bool is_used = false;
    bool is_special = false;
  };
  class Encoding;

  explicit Tokenizer(Definition definition);
  void put(Token id, std::string bytes, bool is_special);
  std::string normalized(std::string_view raw) const;
  void encode_between(std::string_view raw, bool is_top, Encoding& encoding) const;
  void encode_words(std::string_view text, bool is_top, Encoding& encoding) const;
  void encode_word(std::string_view word, Encoding& encoding) const;
  void merge_word(std::string_view word, Encoding& encoding) const;
  std::optional<Token> find_word(std::string_view word) const;
  void take_symbols(std::string_view word, std::vector<Token>& symbols) const;

  std::vector<SplitStep> steps_;
  bool is_composed_;  // text is normalized to NFC first
  std::optional<SpaceMarks> marks_;
  std::optional<Pieces> pieces_;  // with marks_
  bool takes_whole_words_;
  std::optional<Token> unknown_;
  bool joins_unknown_;
  Frame frame_;
  Merges merges_;
  std::vector<Entry> entries_;                         // by id
  std::unordered_map<std::string_view, Token> words_;  // by bytes, which are in entries_
  std::unordered_map<std::string, Token> added_;       // by text
  std::array<std::optional<Token>, 256> bytes_{};      // of each byte alone
  AddedTokens first_;                                  // matched in the original text
  AddedTokens second_;                                 // matched in the normalized text
};

}  // namespace kzero::tokenizer

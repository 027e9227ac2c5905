// Parses and checks a tokenizer.json. A file is refused unless kzero reproduces each of its rules.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/types.hpp"
#include "tokenizer/sections.hpp"
#include "tokenizer/space_marks.hpp"
#include "tokenizer/split.hpp"

namespace kzero::tokenizer {

struct AddedToken {
  Token id = 0;
  std::string content{};
  bool is_special = false;
  bool is_normalized = false;  // matched in the text after normalization
  bool is_single_word = false, strips_left = false, strips_right = false;  // AddedTokens::Entry
};

struct VocabularyEntry {
  Token id = 0;
  std::string bytes{};
  bool is_word = true;     // false: its text does not represent bytes, so merging never produces it
  std::string spelling{};  // as in the file; only if spaces are marked
};

/// A pair of tokens and the token that they become. Earlier merges in the list are applied first.
struct Merge {
  Token left = 0;
  Token right = 0;
  Token merged = 0;
};

struct Definition {
  std::vector<VocabularyEntry> vocabulary{};  // each id and each text once
  std::vector<Merge> merges{};
  std::vector<AddedToken> added{};  // may reuse an id of the vocabulary
  std::vector<SplitStep> steps{};   // none: the text is one word
  bool is_composed = false;
  std::optional<SpaceMarks> marks{};  // SentencePiece's BPE; none: byte-level BPE
  bool takes_whole_words =
      false;  // a word that is in the vocabulary is not split ("ignore_merges")
  std::optional<Token> unknown{};  // for bytes that the vocabulary lacks; none: they are left out
  bool joins_unknown = false;      // a run of such bytes becomes one token ("fuse_unk")
  Frame frame{};                   // tokens that are added around a text
};

/// Reads the text of a tokenizer.json; `path` is for messages. Throws Error(files), naming the key,
/// the value found and what is allowed.
Definition read_definition(const std::string& path, std::string_view json);

}  // namespace kzero::tokenizer

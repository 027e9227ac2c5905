// SentencePiece's spelling of text, as tokenizer.json files of Llama 2, Mistral and Gemma have it:
// U+2581 stands for a space, and "<0x0A>" for a byte of a character that the vocabulary lacks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kzero::tokenizer {

inline constexpr std::string_view space_mark = "\u2581";

/// Before which texts a mark is put, as if they began with a space.
enum class FirstMark {
  never,
  always,
  if_missing,             // before texts that do not begin with a mark
  if_missing_at_the_top,  // the same, but not after an added token
};

/// How a text is spelled, and spelled back.
struct SpaceMarks {
  FirstMark first = FirstMark::never;
  bool is_late = false;      // added tokens that are "normalized" are matched in the text before
  bool is_stripped = false;  // decoded text loses its first character if that is a space
};

/// The text with a mark for each space, and with one before it if `has_first`.
std::string marked(std::string_view text, bool has_first);

/// The vocabulary's spelling of a byte: "<0x0A>".
std::string byte_piece(unsigned char byte);

/// The byte that a spelling stands for, which the library reads more liberally than it writes it.
std::optional<unsigned char> byte_of_piece(std::string_view piece);

/// The bytes of decoded text for which a token's spelling stands.
std::string bytes_of_piece(std::string_view piece);

}  // namespace kzero::tokenizer

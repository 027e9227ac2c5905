// The rules of a tokenizer.json whose BPE falls back to bytes, as those of Llama 2, TinyLlama,
// Mistral and Gemma, which were converted from SentencePiece.
#pragma once

#include <vector>

#include "tokenizer/rules.hpp"
#include "tokenizer/space_marks.hpp"
#include "tokenizer/split.hpp"

namespace kzero::tokenizer {

/// Whether the model of a file falls back to bytes.
bool has_byte_fallback(const Rules::Json& file);

struct SentencePiece {
  SpaceMarks marks{};
  std::vector<SplitStep> steps{};
};

/// Reads the normalizer, the pre_tokenizer and the decoder of such a file. Throws Error(files) for
/// others than these programs have.
SentencePiece read_sentence_piece(const Rules& rules, const Rules::Json& file);

}  // namespace kzero::tokenizer

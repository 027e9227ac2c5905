// Generates the continuations of prompts, several at once. A prompt is read into a free sequence of
// the cache, and every step adds one token to each sequence. A continuation depends only on its
// prompt, its number and the options; other prompts and the batch have no effect.
#pragma once

#include <functional>
#include <string>

#include "grid/group.hpp"
#include "infer/sampler.hpp"
#include "model/decoder.hpp"

namespace kzero::infer {

struct Prompt {
  std::vector<Token> tokens{};  // at least one, at most the model's sequence
  Index max_tokens = 0;         // to generate, at least one
  Index number = 0;             // among all prompts; draws depend on it
};

enum class EndReason { stop, length, end_token };

constexpr std::string_view name_of(EndReason reason) {
  switch (reason) {
    case EndReason::stop:
      return "stop";
    case EndReason::end_token:
      return "end_token";
    default:
      return "length";
  }
}

/// How a step computes: it reads the cache or, as a check, recomputes the entire sequence for every
/// token.
enum class CacheUse { reuse, recompute };

struct GeneratorOptions {
  Sampling sampling;
  std::vector<std::string> stops{};  // texts, none of them empty
  std::vector<Token> end_tokens{};   // end a continuation and are not part of its text
  CacheUse cache = CacheUse::reuse;
  std::function<std::string_view(Token)> bytes;  // of a token
};

struct Continuation {
  std::vector<Token> tokens{};  // all chosen tokens, with an end token and a stop text's
  std::string text{};           // UTF-8; without the stop text and what follows it
  EndReason reason = EndReason::length;
};

/// Receives the continuations of prompts, identified by their position in the list.
struct GeneratorEvents {
  std::function<void(std::size_t prompt, std::string_view text)> text_grew;
  std::function<void(std::size_t prompt, const Continuation& all)> ended;
};

struct GeneratorRates {
  Index read_tokens = 0, steps = 0, step_tokens = 0;
  double read_seconds = 0, step_seconds = 0;
};

/// Generates until each prompt has max_tokens more tokens or the model's sequence is full (reason
/// "length"), or until a stop text or end token. Rank 0 of `ranks` chooses the tokens; events come
/// in the same order on all ranks. Collective over `ranks`, which must be the tensor group.
GeneratorRates generate(model::Decoder& model, const grid::Group& ranks,
                        std::span<const Prompt> prompts, const GeneratorOptions& options,
                        const GeneratorEvents& events);

}  // namespace kzero::infer

#include "infer/token_bytes.hpp"

#include <array>
#include <span>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/printable.hpp"
#include "tokenizer/tokenizer.hpp"

namespace kzero::infer {

namespace {

Index bytes_of_token(const tokenizer::Tokenizer& tokenizer, Token token) {
  if (tokenizer.is_special(token)) return 0;
  try {
    return static_cast<Index>(tokenizer.bytes(token).size());
  } catch (const Error&) {
    return 0;  // an unused id between others
  }
}

/// Empty for an unused id between others.
std::string_view text_of_token(const tokenizer::Tokenizer& tokenizer, Token token) {
  try {
    return tokenizer.bytes(token);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::uint64_t tokenizer_hash(const std::string& path) {
  const std::string json = load_file(path);
  try {
    const tokenizer::Tokenizer tokenizer(path, json);
    Digest digest;
    for (Index id = 0; id < tokenizer.size(); ++id) {
      const auto token = static_cast<Token>(id);
      const std::string_view bytes = text_of_token(tokenizer, token);
      const std::array<std::uint64_t, 3> facts{static_cast<std::uint64_t>(id), bytes.size(),
                                               tokenizer.is_special(token) ? 1U : 0U};
      digest.update(std::as_bytes(std::span(facts)));
      digest.update(std::as_bytes(std::span(bytes)));
    }
    return digest.value();
  } catch (const Error&) {
    return checksum(std::as_bytes(std::span(json)));
  }
}

std::vector<Index> token_bytes(const std::string& path, Index vocab) {
  const tokenizer::Tokenizer tokenizer(path);
  KZERO_REQUIRE(tokenizer.size() <= vocab, ExitCode::files,
                "{}: has tokens up to {}, but the model's vocabulary allows 0 to {}: it is the "
                "tokenizer of another model, or has new tokens, for which a training with "
                "model.vocab = {} adds rows",
                printable(path), tokenizer.size() - 1, vocab - 1, tokenizer.size());
  std::vector<Index> bytes(static_cast<std::size_t>(vocab));
  for (Index token = 0; token < tokenizer.size(); ++token)
    bytes[token] = bytes_of_token(tokenizer, static_cast<Token>(token));
  return bytes;
}

}  // namespace kzero::infer

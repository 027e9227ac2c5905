#include "infer/token_bytes.hpp"

#include "base/error.hpp"
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

}  // namespace

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

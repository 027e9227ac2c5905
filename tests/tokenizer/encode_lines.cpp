// Prints the tokens of each line of standard input, a text in JSON: encode_lines TOKENIZER
// keeps-text|changes-text. Texts are checked to come back from their tokens, unless the tokenizer
// changes them.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.hpp"
#include "base/json.hpp"
#include "tokenizer/tokenizer.hpp"

namespace {

/// Encodes each line, and checks that decoding gives the text back, if the tokenizer keeps it.
void encode_lines(const kzero::tokenizer::Tokenizer& tokenizer, bool keeps_text) {
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto text = kzero::parse_json(line).get<std::string>();
    const auto tokens = tokenizer.encode(text);
    KZERO_REQUIRE(!keeps_text || tokenizer.decode(tokens) == text, kzero::ExitCode::other,
                  "decoding changes {}", line);
    fmt::print("{}\n", fmt::join(tokens, " "));
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  try {
    const kzero::tokenizer::Tokenizer tokenizer{std::string(arguments[1])};
    encode_lines(tokenizer, std::string_view(arguments[2]) == "keeps-text");
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}

// Prints numbers for each line of standard input, a text in JSON, or, to decode, a list of tokens:
//
//   encode_lines TOKENIZER keeps-text     its tokens, and checks that they give the text back
//   encode_lines TOKENIZER changes-text   its tokens
//   encode_lines TOKENIZER framed         these, between the tokens that the post_processor adds
//   encode_lines TOKENIZER.json words     the ends of its words, in bytes
//   encode_lines TOKENIZER decoded        the bytes of their text
//   encode_lines TOKENIZER plain          the bytes of their text, without special tokens
//   encode_lines TOKENIZER streamed       the bytes of one token after the other
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "tokenizer/tokenizer.hpp"

namespace {

using kzero::Token;
namespace tokenizer = kzero::tokenizer;

std::vector<Token> tokens_of(const tokenizer::Tokenizer& one, const std::string& text,
                             bool is_kept) {
  std::vector<Token> tokens = one.encode(text);
  KZERO_REQUIRE(!is_kept || one.decode(tokens) == text, kzero::ExitCode::other,
                "decoding changes {}", text);
  return tokens;
}

std::vector<std::size_t> word_ends(std::span<const tokenizer::SplitStep> steps,
                                   const std::string& text) {
  std::vector<std::size_t> ends;
  std::size_t at = 0;
  tokenizer::for_each_word(steps, text,
                           [&](std::string_view word) { ends.push_back(at += word.size()); });
  return ends;
}

/// Calls numbers(value) for each line, whose JSON is a T.
template <class T = std::string, class F>
void print_for_each_line(F&& numbers) {
  std::string line;
  while (std::getline(std::cin, line)) {
    fmt::print("{}\n", fmt::join(numbers(kzero::parse_json(line).get<T>()), " "));
  }
}

std::vector<int> text_of(const tokenizer::Tokenizer& one, const std::vector<Token>& tokens,
                         std::string_view mode) {
  std::string text;
  if (mode != "streamed") text = one.decode(tokens, mode == "plain");
  for (const Token token : mode == "streamed" ? tokens : std::vector<Token>())
    text += one.bytes(token);
  std::vector<int> bytes;
  for (const char byte : text) bytes.push_back(static_cast<unsigned char>(byte));
  return bytes;
}

void print_lines(const std::string& path, std::string_view mode) {
  if (mode == "words") {
    std::ifstream file(path);
    const std::string json{std::istreambuf_iterator<char>(file), {}};
    const auto steps = tokenizer::read_definition(path, json).steps;
    print_for_each_line([&](const std::string& text) { return word_ends(steps, text); });
  } else if (mode == "framed") {
    const tokenizer::Tokenizer one(path);
    print_for_each_line([&](const std::string& text) { return one.encode_framed(text); });
  } else if (mode == "decoded" || mode == "plain" || mode == "streamed") {
    const tokenizer::Tokenizer one(path);
    print_for_each_line<std::vector<Token>>(
        [&](const std::vector<Token>& tokens) { return text_of(one, tokens, mode); });
  } else {
    const tokenizer::Tokenizer one(path);
    const bool is_kept = mode == "keeps-text";
    print_for_each_line([&](const std::string& text) { return tokens_of(one, text, is_kept); });
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  try {
    print_lines(arguments[1], arguments[2]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}

// Tokenizers and texts: the bytes up to the first NUL are a tokenizer.json, those after it a text,
// which every tokenizer that is accepted encodes, or refuses as it is not UTF-8.
#include <optional>

#include "fuzz.hpp"
#include "tokenizer/tokenizer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kzero;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), size);
  std::optional<tokenizer::Tokenizer> read;
  if (!fuzz::accepts([&] { read.emplace("fuzz.json", input.substr(0, end)); })) return 0;
  std::vector<Token> tokens;
  const std::string_view text = input.substr(std::min(end + 1, size));
  if (!fuzz::accepts([&] { tokens = read->encode(text); })) return 0;
  for (int byte = 0; byte < 256; ++byte) {  // the text of others cannot come back
    if (!read->find(std::string(1, static_cast<char>(byte)))) return 0;
  }
  const std::string again = read->decode(tokens);
  fuzz::require(again.empty() == text.empty(), "a text comes back from its tokens");
  fuzz::require(read->decode(read->encode(again)) == again, "a text that came back stays the same");
  return 0;
}

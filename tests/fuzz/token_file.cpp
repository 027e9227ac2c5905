// Token files in both formats, of all widths: opened, hashed, checked and read to the end.
#include <vector>

#include "data/token_stream.hpp"
#include "fuzz.hpp"

namespace {

using namespace kzero;

void read_all(const std::string& path, deck::DataFormat format, Index vocab) {
  const data::TokenStream stream({path}, format, vocab);
  stream.digest();
  ProblemList problems;
  stream.check_tokens(0, 1, problems);
  std::vector<Token> tokens(stream.size());
  const bool is_read = fuzz::accepts([&] { stream.read(0, stream.size(), tokens.data()); });
  fuzz::require(is_read == problems.empty(), "reading and checking refuse the same files");
  if (!is_read) return;
  for (const Token token : tokens) {
    fuzz::require(0 <= token && token < vocab, "tokens that were read are in the vocabulary");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::MemoryFile memory;
  memory.store(data, size);
  fuzz::accepts([&] { read_all(memory.path(), deck::DataFormat::bytes, 200); });
  for (const Index vocab : {50257, 151936})
    fuzz::accepts([&] { read_all(memory.path(), deck::DataFormat::llmc, vocab); });
  return 0;
}

// Token files and documents in all formats, of all widths: opened, hashed, checked and read. Of a
// Megatron-LM dataset the index is hostile, and the tokens are not.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "data/document_files.hpp"
#include "data/token_stream.hpp"
#include "fuzz.hpp"

namespace {

using namespace kzero;

void read_all(const std::string& path, data::TokenEncoding encoding, Index vocab) {
  const data::TokenStream stream({path}, encoding, vocab);
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

void read_documents(const std::string& path, Index vocab) {
  constexpr Index sequence = 512;
  ProblemList problems;
  const data::DocumentFiles files({path}, sequence, vocab, problems);
  files.digest();
  std::vector<Token> inputs(sequence), targets(sequence);
  for (Index document = 0; document < files.documents(); ++document) {
    files.read(document, inputs.data(), targets.data());
    for (Index i = 0; i < files.length(document); ++i) {
      fuzz::require(0 <= inputs[i] && inputs[i] < vocab && targets[i] < vocab,
                    "tokens that were read are in the vocabulary");
    }
  }
}

/// A file of 64 bytes and, as its index, a link to the file under test.
class Dataset {
 public:
  explicit Dataset(const std::string& index)
      : folder_(std::filesystem::temp_directory_path() /
                ("kzero_fuzz_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    std::ofstream(tokens(), std::ios::binary) << std::string(64, '\1');
    std::filesystem::remove(folder_ / "set.idx");
    std::filesystem::create_symlink(index, folder_ / "set.idx");
  }
  ~Dataset() { std::filesystem::remove_all(folder_); }
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  std::string tokens() const { return folder_ / "set.bin"; }

 private:
  std::filesystem::path folder_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::MemoryFile memory;
  memory.store(data, size);
  fuzz::accepts([&] { read_all(memory.path(), deck::DataFormat::bytes, 200); });
  for (const Index vocab : {50257, 151936})
    fuzz::accepts([&] { read_all(memory.path(), deck::DataFormat::llmc, vocab); });
  for (const Index width : {2, 4})
    fuzz::accepts([&] { read_all(memory.path(), {deck::DataFormat::raw, width}, 50257); });
  fuzz::accepts([&] { read_documents(memory.path(), 200); });
  static const Dataset dataset(memory.path());
  fuzz::accepts([&] { read_all(dataset.tokens(), deck::DataFormat::megatron, 200); });
  return 0;
}

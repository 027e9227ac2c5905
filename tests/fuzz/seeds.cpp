// Writes what the targets start from, a folder each: decks and tokenizers of the tests, a tiny
// checkpoint, small files.
//
//   fuzz_seeds DECKS FOLDER
#include <array>
#include <fstream>
#include <iostream>
#include <iterator>

#include "convert/safetensors_writer.hpp"
#include "saved.hpp"
#include "support/bad_decks.hpp"

namespace {

namespace fs = std::filesystem;
using namespace kzero;

void store(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The overrides that the deck names in its first lines come after a NUL each.
void write_deck(const fs::path& path, std::string text) {
  constexpr std::string_view mark = "# override = ";
  for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; ++at) {
    const std::size_t begin = at + mark.size();
    text += '\0' + text.substr(begin, text.find('\n', begin) - begin);
  }
  store(path, text);
}

void write_decks(const fs::path& decks, const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(decks / "good"))
    write_deck(folder / entry.path().filename(), text_of(entry.path()));
  for (const auto& deck : tests::bad_decks(decks))
    write_deck(folder / (deck.name + ".toml"), deck.text);
}

/// A text follows a NUL.
void write_tokenizers(const fs::path& tokenizers, const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(tokenizers)) {
    const std::string text = "It's 12345 e\u0301\u4e2d<|endoftext|>\r\n  \t the rank";
    store(folder / entry.path().filename(), text_of(entry.path() / "tokenizer.json") + '\0' + text);
  }
}

void write_quantities(const fs::path& folder) {
  const std::array texts{"4096", "32MiB", "1 GiB", "1h30min", "2d", "0.25s", "1e300d"};
  for (const std::string text : texts) store(folder / text, text);
}

void write_plan_options(const fs::path& folder) {
  store(folder / "deck", "a.toml\nzero.stage=3\n--ranks=64,128\n--fit=1.5 TB\n--tensor=1,4");
  store(folder / "rates", "a.toml\n--tflops=1e2\n--bandwidth=10GB\n--memory-bandwidth=2TiB");
  store(folder / "nominal", "--parameters=7.5e9\n--ranks=64\n--stage=2\n--json");
}

void write_safetensors(const fs::path& folder) {
  fs::create_directories(folder);
  convert::SafetensorsWriter writer(folder / "floats",
                                    {{"wte.weight", {2, 3}}, {"empty", {0}}, {"scalar", {}}});
  writer.append(std::array{1.F, 2.F, 3.F, 4.F, 5.F, 6.F, 7.F});
  writer.finish();
  std::string bytes = text_of(folder / "floats");
  for (std::size_t at = 0; (at = bytes.find("F32", at)) != std::string::npos;)
    bytes.replace(at, 3, "I32");
  store(folder / "integers", bytes);
}

void write_tokens(const fs::path& folder) {
  const auto store_llmc = [&](const char* name, std::array<std::int32_t, 256> header,
                              const std::string& tokens) {
    store(folder / name,
          std::string(reinterpret_cast<const char*>(header.data()), sizeof header) + tokens);
  };
  store_llmc("llmc", {20240520, 1, 3}, std::string("\x01\x00\x02\x00\xff\xff", 6));
  store_llmc("llmc_32_bits", {20240801, 7, 3},
             std::string("\x01\0\0\0\x70\x11\1\0\x7f\x51\2\0", 12));
  store(folder / "bytes", "a text of bytes\n");
  store(folder / "raw", std::string("\x01\0\0\0\x02\0\0\0", 8));
  // The index of a Megatron-LM dataset of 64 bytes: two sequences of one document, in turned order.
  store(folder / "megatron", std::string("MMIDIDX\0\0\1\0\0\0\0\0\0\0\1", 18) +
                                 std::string("\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16) +
                                 std::string("\x30\0\0\0\x10\0\0\0", 8) +
                                 std::string("\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16) +
                                 std::string("\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16));
}

void write_manifests(const fs::path& folder) {
  const fuzz::SavedCheckpoint saved;
  const std::string bytes = fuzz::manifest_bytes(saved);
  store(folder / "manifest" / "small", bytes);
  store(folder / "manifest_hdf5" / "small", bytes);
  std::string values;
  for (const auto& table : fuzz::tables_of(bytes))
    values += bytes.substr(table.offset, table.bytes);
  store(folder / "manifest_values" / "small", values);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: fuzz_seeds DECKS FOLDER\n";
    return 2;
  }
  const fs::path folder = argv[2];
  write_decks(argv[1], folder / "deck");
  write_quantities(folder / "quantity");
  write_tokenizers(fs::path(argv[1]).parent_path() / "tokenizer", folder / "tokenizer");
  write_plan_options(folder / "plan_options");
  write_safetensors(folder / "safetensors");
  write_tokens(folder / "token_file");
  write_manifests(folder);
}

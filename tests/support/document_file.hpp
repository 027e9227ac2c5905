// Files of documents for tests, as docs/data.md describes them.
#pragma once

#include <array>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::tests {

/// The tokens of a document, and 1 for each that is a target.
struct Document {
  std::vector<Token> tokens;
  std::vector<int> targets;

  Index size() const { return static_cast<Index>(tokens.size()); }
};

/// The numbers of a file, which a test may forge.
struct DocumentNumbers {
  std::string magic = "KZERODOC";
  std::array<std::uint32_t, 2> version{1, 0};
  std::array<std::uint64_t, 2> counts{};  // tokens, documents
  std::vector<std::uint64_t> starts{0};
  std::vector<float> weights{};  // of each document, or none
  std::vector<std::uint32_t> words{};

  explicit DocumentNumbers(const std::vector<Document>& documents,
                           std::vector<float> of_documents = {})
      : weights(std::move(of_documents)) {
    if (!weights.empty()) version[1] = 2;
    for (const Document& document : documents) {
      for (std::size_t i = 0; i < document.tokens.size(); ++i) {
        const auto mark = static_cast<std::uint32_t>(document.targets[i]) << 31;
        words.push_back(static_cast<std::uint32_t>(document.tokens[i]) | mark);
      }
      starts.push_back(words.size());
    }
    counts = {words.size(), documents.size()};
  }

  /// Writes the file and returns its path.
  std::string write(const std::string& path) const {
    std::ofstream file(path, std::ios::binary);
    const auto put = [&](const auto& values) {
      const auto bytes = std::as_bytes(std::span(values));
      file.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
    };
    put(magic), put(version), put(counts);
    put(std::vector<char>(256 - 24 - magic.size()));
    put(starts), put(weights), put(words);
    return path;
  }
};

/// Reads a sound file of documents without weights.
inline std::vector<Document> read_documents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto read = [&](auto& values) {
    file.read(reinterpret_cast<char*>(values.data()),
              static_cast<std::streamsize>(values.size() * sizeof(values[0])));
  };
  std::array<std::uint64_t, 2> counts{};  // tokens, documents
  file.seekg(16), read(counts), file.seekg(256);
  std::vector<std::uint64_t> starts(counts[1] + 1);
  std::vector<std::uint32_t> words(counts[0]);
  read(starts), read(words);
  std::vector<Document> documents(counts[1]);
  for (std::size_t d = 0; d < documents.size(); ++d) {
    for (std::uint64_t i = starts[d]; i < starts[d + 1]; ++i) {
      documents[d].tokens.push_back(static_cast<Token>(words[i] & 0x7FFFFFFFU));
      documents[d].targets.push_back(static_cast<int>(words[i] >> 31U));
    }
  }
  return documents;
}

/// Documents with tokens that tell document and place, and targets that differ from one to the
/// next. Some have no target.
inline std::vector<Document> numbered_documents(const std::vector<Index>& lengths, Token vocab) {
  std::vector<Document> documents;
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    Document document;
    for (Index i = 0; i < lengths[d]; ++i) {
      document.tokens.push_back(static_cast<Token>((31 * static_cast<Index>(d) + i) % vocab));
      document.targets.push_back(i > 0 && d % 5 != 3 && (i + static_cast<Index>(d)) % 3 != 0);
    }
    documents.push_back(std::move(document));
  }
  return documents;
}

}  // namespace kzero::tests

// Files of documents as one list of documents, in the order of the files. It is independent of
// packing and ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/problem_list.hpp"
#include "base/types.hpp"
#include "data/data_files.hpp"
#include "data/document_file.hpp"
#include "data/log_prob_file.hpp"

namespace kzero::data {

/// Documents of at most `sequence` tokens below `vocab`. Keeps 12 bytes for each, and 4 more if any
/// file has weights. Reading is thread-safe.
class DocumentFiles : public DataFiles {
 public:
  /// Opens the files of documents or of pairs named by `patterns` (see expand_files) and reads each
  /// once, on every rank, to check it and to count the targets. Adds faults to `problems`; bad
  /// files are left out.
  DocumentFiles(const std::vector<std::string>& patterns, Index sequence, Index vocab,
                ProblemList& problems, deck::DataFormat format = deck::DataFormat::documents);

  Index size() const override { return starts_.back(); }
  Index file_count() const override { return static_cast<Index>(files_.size()); }
  std::uint64_t digest() const override;
  std::uint64_t content_sum(Index part, Index /*parts*/) const override {
    return part == 0 ? content_digest() : 0;
  }
  void check_tokens(Index /*part*/, Index /*parts*/, ProblemList& /*problems*/) const override {}

  Index documents() const { return static_cast<Index>(targets_.size()); }
  Index length(Index document) const { return starts_[document + 1] - starts_[document]; }
  Index targets(Index document) const { return targets_[document]; }
  /// Whether any file has weights. A document of a file without has the weight 1.
  bool have_weights() const { return !weights_.empty(); }
  float weight(Index document) const { return have_weights() ? weights_[document] : 1; }
  bool are_pairs() const { return format_ == deck::DataFormat::pairs; }

  /// Reads the sum of ln p of each document under the reference model. Throws Error(files) if the
  /// file is bad, or is of other documents. The digest then depends on it. Returns the hash of the
  /// model.
  std::uint64_t read_reference(const std::string& path);
  /// Of one document; 0 without a reference.
  double reference(Index document) const;

  /// A digest of all tokens, their marks and where documents begin, whatever the files' names.
  std::uint64_t content_digest() const;

  Index longest() const;       // tokens
  Index target_count() const;  // of all documents

  /// Where each document begins in the tokens of all files, and the end [documents + 1].
  std::span<const Index> starts() const { return starts_; }

  /// Copies a document: inputs [length] and targets [length], no_target where there is none.
  /// Allocates nothing. Throws Error(files) if the file changed while it was in use.
  void read(Index document, Token* inputs, Token* targets) const;

 private:
  void add(const std::string& path, Index sequence);

  deck::DataFormat format_;
  Index vocab_;
  std::vector<std::unique_ptr<DocumentFile>> files_;
  std::vector<Index> first_{0};  // document of each file, and the end
  std::vector<Index> starts_{0};
  std::vector<std::uint32_t> targets_;
  std::vector<float> weights_;           // empty: no file has any
  std::vector<std::uint64_t> contents_;  // digest of each file's tokens
  std::optional<LogProbs> reference_;
};

}  // namespace kzero::data

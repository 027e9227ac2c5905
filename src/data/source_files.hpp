// The opened files of a source in any format, and the samples of parts of them. Training and
// validation divide the windows of a stream, or the documents of files of documents.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/problem_list.hpp"
#include "data/document_files.hpp"
#include "data/packed_documents.hpp"
#include "data/sampler.hpp"
#include "data/teacher_file.hpp"
#include "data/token_stream.hpp"

namespace kzero::data {

class SourceFiles {
 public:
  /// Opens the files for sequences of `sequence` tokens below `vocab`, with documents in streams
  /// that end with `end_token`; -1: without. Adds faults to `problems`.
  SourceFiles(const std::vector<std::string>& patterns, TokenEncoding encoding, Index sequence,
              Index vocab, Index end_token, ProblemList& problems);

  std::shared_ptr<const DataFiles> files() const;
  bool has_document_files() const { return documents_ != nullptr; }
  bool has_pairs() const { return documents_ != nullptr && documents_->are_pairs(); }

  /// The number of windows, of documents, or of pairs.
  Index parts() const;

  /// Reads the log-probabilities of pairs under the reference model (see DocumentFiles). Returns
  /// the hash of that model.
  std::uint64_t read_reference(const std::string& path) { return documents_->read_reference(path); }

  /// Opens a teacher's file with `top` tokens of each position. Throws Error(files), as
  /// TeacherFile does. Whether it is of these tokens is not known then.
  void open_teacher(const std::string& path, Index top);
  const std::shared_ptr<const TeacherFile>& teacher() const { return teacher_; }

  /// Returns the samples of parts [first, first + count), count > 0, with what the teacher says if
  /// one is given.
  std::unique_ptr<const EpochSource> samples(
      Index first, Index count, deck::DataOrder order, std::uint64_t seed,
      const std::shared_ptr<const TeacherFile>& teacher = {}) const;

  /// Throws Error(files), naming `key`, unless there is a sample and, of documents, a target.
  void require_samples(const std::string& key) const;

 private:
  Index sequence_, end_token_, vocab_;
  std::shared_ptr<const TokenStream> stream_;  // null for documents
  std::shared_ptr<DocumentFiles> documents_;
  std::shared_ptr<const TeacherFile> teacher_;  // null: none
};

}  // namespace kzero::data

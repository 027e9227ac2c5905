#include "data/source_files.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace kzero::data {

SourceFiles::SourceFiles(const std::vector<std::string>& patterns, TokenEncoding encoding,
                         Index sequence, Index vocab, Index end_token, ProblemList& problems)
    : sequence_(sequence), end_token_(end_token), vocab_(vocab) {
  if (deck::is_of_documents(encoding.format)) {
    documents_ =
        std::make_shared<DocumentFiles>(patterns, sequence, vocab, problems, encoding.format);
  } else {
    stream_ = std::make_shared<TokenStream>(patterns, encoding, vocab, problems);
  }
}

std::shared_ptr<const DataFiles> SourceFiles::files() const {
  if (documents_) return documents_;
  return stream_;
}

Index SourceFiles::parts() const {
  if (has_pairs()) return documents_->documents() / 2;
  return documents_ ? documents_->documents() : count_windows(*stream_, sequence_);
}

void SourceFiles::open_teacher(const std::string& path, Index top) {
  auto file = std::make_shared<const TeacherFile>(path);
  if (documents_) {
    file->require(top, documents_->size(), vocab_, 0);
  } else {
    file->require(top, std::max<Index>(0, stream_->size() - 1), vocab_, sequence_);
  }
  teacher_ = std::move(file);
}

std::unique_ptr<const EpochSource> SourceFiles::samples(
    Index first, Index count, deck::DataOrder order, std::uint64_t seed,
    const std::shared_ptr<const TeacherFile>& teacher) const {
  const Index each = has_pairs() ? 2 : 1;  // documents of a part
  if (documents_)
    return std::make_unique<PackedDocuments>(documents_, sequence_, each * first, each * count,
                                             order, seed, teacher);
  const auto end_token =
      end_token_ < 0 ? std::nullopt : std::optional(static_cast<Token>(end_token_));
  return std::make_unique<Sampler>(stream_, sequence_, first, count, order, seed, end_token,
                                   teacher);
}

void SourceFiles::require_samples(const std::string& key) const {
  if (!documents_) {
    KZERO_REQUIRE(parts() > 0, ExitCode::files,
                  "{}: the files hold {} tokens, but one sample of model.sequence = {} needs {}; "
                  "give more data or a shorter sequence",
                  key, stream_->size(), sequence_, sequence_ + 1);
    return;
  }
  KZERO_REQUIRE(documents_->target_count() > 0, ExitCode::files,
                "{}: none of the {} documents has a target, so there is nothing to predict; write "
                "the files again with targets",
                key, parts());
}

}  // namespace kzero::data

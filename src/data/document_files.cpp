#include "data/document_files.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "data/file_list.hpp"

namespace kzero::data {

DocumentFiles::DocumentFiles(const std::vector<std::string>& patterns, Index sequence, Index vocab,
                             ProblemList& problems, deck::DataFormat format)
    : format_(format), vocab_(vocab) {
  const std::vector<std::string> paths = expand_files(patterns, problems);
  OpenFiles::of_process().make_allowance(paths.size());
  for (const std::string& path : paths) problems.collect(path, [&] { add(path, sequence); });
}

void DocumentFiles::add(const std::string& path, Index sequence) {
  auto file = std::make_unique<DocumentFile>(path, format_);
  constexpr Index limit = std::numeric_limits<std::uint32_t>::max();
  KZERO_REQUIRE(documents() + file->documents() < limit, ExitCode::files,
                "{}: with the files before it there are {} documents, but a source may have {}",
                path, documents() + file->documents(), limit - 1);
  const DocumentTable table = file->scan(sequence, vocab_);
  const Index begin = size();
  for (const Index start : std::span(table.starts).subspan(1)) starts_.push_back(begin + start);
  targets_.insert(targets_.end(), table.targets.begin(), table.targets.end());
  if (have_weights() || !table.weights.empty()) {  // those of files without weights are 1
    weights_.resize(static_cast<std::size_t>(first_.back()), 1);
    weights_.insert(weights_.end(), table.weights.begin(), table.weights.end());
    weights_.resize(targets_.size(), 1);
  }
  contents_.push_back(table.content);
  files_.push_back(std::move(file));
  first_.push_back(documents());
}

Index DocumentFiles::longest() const {
  Index longest = 0;
  for (Index document = 0; document < documents(); ++document)
    longest = std::max(longest, length(document));
  return longest;
}

Index DocumentFiles::target_count() const {
  return std::accumulate(targets_.begin(), targets_.end(), Index{0});
}

void DocumentFiles::read(Index document, Token* inputs, Token* targets) const {
  KZERO_EXPECT(document >= 0 && document < documents());
  const auto file = std::ranges::upper_bound(first_, document) - first_.begin() - 1;
  files_[file]->read(starts_[document] - starts_[first_[file]], length(document), vocab_,
                     targets_[document], inputs, targets);
}

std::uint64_t DocumentFiles::digest() const {
  std::vector<std::uint64_t> parts;
  for (const auto& file : files_) parts.push_back(file->digest());
  parts.push_back(checksum(std::as_bytes(std::span(starts_))));
  parts.push_back(checksum(std::as_bytes(std::span(targets_))));
  if (have_weights()) parts.push_back(checksum(std::as_bytes(std::span(weights_))));
  if (reference_) parts.push_back(checksum(log_prob_bytes(*reference_)));
  return checksum(std::as_bytes(std::span(parts)));
}

std::uint64_t DocumentFiles::read_reference(const std::string& path) {
  LogProbs found = read_log_probs(path);
  const std::uint64_t content = content_digest();
  KZERO_REQUIRE(std::ssize(found.values) == documents() && found.documents == content,
                ExitCode::files,
                "{}: has log-probabilities of {} documents with hash {}, but the data has {} with "
                "hash {}; write it again with `kzero evaluate MODEL FILES --log-probs {}`",
                printable(path), found.values.size(), format_checksum(found.documents), documents(),
                format_checksum(content), printable(path));
  reference_ = std::move(found);
  return reference_->model;
}

double DocumentFiles::reference(Index document) const {
  return reference_ ? reference_->values[document] : 0;
}

std::uint64_t DocumentFiles::content_digest() const {
  std::vector<std::uint64_t> parts = contents_;
  parts.push_back(checksum(std::as_bytes(std::span(starts_))));
  return checksum(std::as_bytes(std::span(parts)));
}

}  // namespace kzero::data

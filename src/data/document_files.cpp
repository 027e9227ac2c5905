#include "data/document_files.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "data/file_list.hpp"

namespace kzero::data {

DocumentFiles::DocumentFiles(const std::vector<std::string>& patterns, Index sequence, Index vocab,
                             ProblemList& problems)
    : vocab_(vocab) {
  const std::vector<std::string> paths = expand_files(patterns, problems);
  OpenFiles::of_process().make_allowance(paths.size());
  for (const std::string& path : paths) problems.collect(path, [&] { add(path, sequence); });
}

void DocumentFiles::add(const std::string& path, Index sequence) {
  auto file = std::make_unique<DocumentFile>(path);
  constexpr Index limit = std::numeric_limits<std::uint32_t>::max();
  KZERO_REQUIRE(documents() + file->documents() < limit, ExitCode::files,
                "{}: with the files before it there are {} documents, but a source may have {}",
                path, documents() + file->documents(), limit - 1);
  const DocumentTable table = file->scan(sequence, vocab_);
  const Index begin = size();
  for (const Index start : std::span(table.starts).subspan(1)) starts_.push_back(begin + start);
  targets_.insert(targets_.end(), table.targets.begin(), table.targets.end());
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
  return checksum(std::as_bytes(std::span(parts)));
}

std::uint64_t DocumentFiles::content_digest() const {
  std::vector<std::uint64_t> parts = contents_;
  parts.push_back(checksum(std::as_bytes(std::span(starts_))));
  return checksum(std::as_bytes(std::span(parts)));
}

}  // namespace kzero::data

#include "data/token_stream.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <span>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "data/file_list.hpp"

namespace kzero::data {

namespace {

/// Raises the limit of open files, since corpora come in thousands of files and the usual limit is
/// 1024. Raising it by the number of files to be opened, as far as allowed, leaves the rest of the
/// program what it had.
void allow_open_files(std::size_t count) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, limit.rlim_cur + count);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

TokenStream::TokenStream(const std::vector<std::string>& patterns, TokenEncoding encoding,
                         Index vocab)
    : vocab_(vocab) {
  ProblemList problems;
  open(patterns, encoding, problems);
  problems.throw_if_any(ExitCode::files);
}

TokenStream::TokenStream(const std::vector<std::string>& patterns, TokenEncoding encoding,
                         Index vocab, ProblemList& problems)
    : vocab_(vocab) {
  open(patterns, encoding, problems);
}

void TokenStream::open(const std::vector<std::string>& patterns, TokenEncoding encoding,
                       ProblemList& problems) {
  const std::vector<std::string> paths = expand_files(patterns, problems);
  allow_open_files(paths.size());
  for (const std::string& path : paths) {
    problems.collect(path, [&] {
      files_.push_back(std::make_unique<TokenFile>(path, encoding));
      starts_.push_back(starts_.back() + files_.back()->count());
    });
  }
}

void TokenStream::read(Index begin, Index count, Token* out) const {
  KZERO_EXPECT(begin >= 0 && count >= 0 && begin + count <= size());
  const Index end = begin + count;
  auto file = static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), begin) -
                                       starts_.begin() - 1);
  while (begin < end) {
    const Index here = std::min(end, starts_[file + 1]) - begin;
    files_[file]->read(begin - starts_[file], here, vocab_, out);
    out += here;
    begin += here;
    ++file;
  }
}

std::uint64_t TokenStream::digest() const {
  std::vector<std::uint64_t> digests;
  for (const auto& file : files_) digests.push_back(file->digest());
  return checksum(std::as_bytes(std::span(digests)));
}

void TokenStream::check_tokens(Index part, Index parts, ProblemList& problems) const {
  for (const auto& file : files_) {
    problems.collect(file->path(), [&] {
      file->check(part_begin(file->count(), parts, part), part_size(file->count(), parts, part),
                  vocab_);
    });
  }
}

}  // namespace kzero::data

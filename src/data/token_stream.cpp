#include "data/token_stream.hpp"

#include <algorithm>
#include <span>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "data/file_list.hpp"

namespace kzero::data {

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
  OpenFiles::of_process().make_allowance(paths.size());
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

std::uint64_t TokenStream::content_sum(Index part, Index parts) const {
  constexpr Index block = Index{1} << 20;  // tokens
  const Index blocks = ceil_div(size(), block);
  std::vector<Token> tokens(static_cast<std::size_t>(std::min(block, size())));
  std::uint64_t sum = part == 0 ? static_cast<std::uint64_t>(size()) : 0;
  for (Index b = part_begin(blocks, parts, part); b < part_begin(blocks, parts, part + 1); ++b) {
    const auto here =
        std::span(tokens).first(static_cast<std::size_t>(std::min(block, size() - b * block)));
    read(b * block, std::ssize(here), here.data());
    Digest digest;
    digest.update(std::as_bytes(std::span(&b, 1)));
    digest.update(std::as_bytes(here));
    sum += digest.value();
  }
  return sum;
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

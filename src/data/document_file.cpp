#include "data/document_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "data/batch_source.hpp"
#include "data/file_list.hpp"
#include "data/formats.hpp"

namespace kzero::data {

namespace {

static_assert(std::endian::native == std::endian::little, "files of documents are little-endian");

constexpr std::size_t words_at_once = 1 << 12;  // on the stack
constexpr std::size_t words_scanned = 1 << 18;  // at once
constexpr Index starts_at_once = 1 << 16;
constexpr std::uint32_t token_bits = 0x7FFFFFFF;  // bit 31 marks a target

constexpr Index token_of(std::uint32_t word) { return word & token_bits; }
constexpr Index target_of(std::uint32_t word) { return word >> 31; }

/// The largest token and the number of targets of some words.
struct WordSums {
  Index largest = 0;
  Index targets = 0;
};

// Plain reductions, which compilers vectorize. Positions are looked up only when needed.
WordSums sums_of(std::span<const std::uint32_t> words) {
  std::uint32_t largest = 0, targets = 0;
  for (const std::uint32_t word : words) {
    largest = std::max(largest, word & token_bits);
    targets += word >> 31;
  }
  return {Index{largest}, Index{targets}};
}

/// Goes through the words of a file in order. Counts the targets of each document and finds faults.
class DocumentScan {
 public:
  DocumentScan(const std::string& path, Index vocab, DocumentTable& table)
      : path_(path), vocab_(vocab), table_(table) {}

  void add(std::span<const std::uint32_t> words) {
    while (!words.empty()) {
      const Index begin = table_.starts[document_], end = table_.starts[document_ + 1];
      const auto here = std::min(words.size(), static_cast<std::size_t>(end - at_));
      add_part(words.first(here), at_ - begin);
      words = words.subspan(here);
      at_ += static_cast<Index>(here);
      if (at_ == end) ++document_;
    }
  }

  void finish() const {
    KZERO_REQUIRE(bad_document_ < 0, ExitCode::files,
                  "{}: document {}: token {} (both counted from 0) is {}, but model.vocab = {} "
                  "allows 0 to {}; {}",
                  path_, bad_document_, bad_place_, bad_token_, vocab_, vocab_ - 1,
                  vocabulary_advice(largest_));
  }

 private:
  /// Adds words of the current document. The first is its token number `place`.
  void add_part(std::span<const std::uint32_t> words, Index place) {
    KZERO_REQUIRE(place > 0 || target_of(words.front()) == 0, ExitCode::files,
                  "{}: document {} (counted from 0) begins with a target, but a first token has no "
                  "tokens before it that predict it; write the file again",
                  path_, document_);
    const WordSums sums = sums_of(words);
    table_.targets[document_] += static_cast<std::uint32_t>(sums.targets);
    largest_ = std::max(largest_, sums.largest);
    if (sums.largest < vocab_ || bad_document_ >= 0) return;
    const auto bad =
        std::ranges::find_if(words, [&](std::uint32_t word) { return token_of(word) >= vocab_; });
    bad_document_ = document_;
    bad_place_ = place + (bad - words.begin());
    bad_token_ = token_of(*bad);
  }

  const std::string& path_;
  Index vocab_;
  DocumentTable& table_;
  Index document_ = 0, at_ = 0;  // the next word: its document, and its place in the file
  Index largest_ = 0;            // token
  Index bad_document_ = -1, bad_place_ = 0,
        bad_token_ = 0;  // the first token beyond the vocabulary
};

}  // namespace

DocumentFile::DocumentFile(const std::string& path, deck::DataFormat format) : file_(path) {
  struct stat status {};
  if (!file_.open(status)) {
    const int problem = errno;
    fail(ExitCode::files, "{}: cannot be opened for reading: {}", path, reason_of(problem, path));
  }
  require_regular(path, status.st_mode);
  bytes_ = status.st_size;
  std::array<std::byte, document_header_bytes> buffer;
  const auto head = std::span(buffer).first(static_cast<std::size_t>(file_.read(buffer, 0)));
  refuse_other_format(path, head, format);
  counts_ = document_counts(path, head, bytes_);
  header_digest_ = checksum(std::as_bytes(head));
}

template <class Stored>
void DocumentFile::load(std::span<Stored> values, Index offset) const {
  const Index loaded = file_.read(std::as_writable_bytes(values), offset);
  if (loaded == static_cast<Index>(values.size_bytes())) return;
  fail(
      ExitCode::files,
      "{}: byte {} cannot be read: the file had {} bytes when it was opened and has {} now; it was "
      "truncated while it was in use: restore it and start again",
      path(), offset + loaded, bytes_, file_.size_now());
}

// Memory grows with the starts that were read and are in order: a sparse file may count billions.
std::vector<Index> DocumentFile::read_starts() const {
  const Index count = counts_.documents + 1;
  std::vector<Index> starts;
  while (std::ssize(starts) < count) {
    const Index begin = std::ssize(starts);
    starts.resize(static_cast<std::size_t>(std::min(count, begin + starts_at_once)));
    load(std::span(starts).subspan(begin), document_header_bytes + begin * Index{sizeof(Index)});
    for (Index i = std::max<Index>(begin, 1); i < std::ssize(starts); ++i) {
      KZERO_REQUIRE(starts[i - 1] < starts[i], ExitCode::files,
                    "{}: document {} (counted from 0) begins at token {} and ends at token {}, but "
                    "a document has at least one token; write the file again",
                    path(), i - 1, starts[i - 1], starts[i]);
    }
  }
  KZERO_REQUIRE(starts.front() == 0 && starts.back() == counts_.tokens, ExitCode::files,
                "{}: its documents begin at token {} and end at token {}, but must begin at 0 and "
                "end at {}; write the file again",
                path(), starts.front(), starts.back(), counts_.tokens);
  return starts;
}

// Called after read_starts(), so the file has as many documents as its header counts.
std::vector<float> DocumentFile::read_weights() const {
  if (!counts_.is_weighted) return {};
  std::vector<float> weights(static_cast<std::size_t>(counts_.documents));
  load(std::span(weights), counts_.weight_offset());
  const auto bad = std::ranges::find_if(weights, [](float w) { return !std::isfinite(w); });
  KZERO_REQUIRE(bad == weights.end(), ExitCode::files,
                "{}: document {} (counted from 0) has the weight {}, but a weight is a finite "
                "number; write the file again",
                path(), bad - weights.begin(), *bad);
  return weights;
}

void DocumentFile::check_lengths(std::span<const Index> starts, Index sequence) const {
  Index count = 0, longest = 0;
  for (Index i = 0; i < counts_.documents; ++i) {
    const Index length = starts[i + 1] - starts[i];
    if (length > sequence) ++count;
    if (length > starts[longest + 1] - starts[longest]) longest = i;
  }
  KZERO_REQUIRE(count == 0, ExitCode::files,
                "{}: {} of {} documents have more than model.sequence = {} tokens (document {}, "
                "counted from 0, has {}); raise model.sequence, or write the file again with long "
                "documents cut or left out",
                path(), count, counts_.documents, sequence, longest,
                starts[longest + 1] - starts[longest]);
}

void DocumentFile::check_pairs(const DocumentTable& table, Index sequence) const {
  for (Index i = 0; i < counts_.documents; ++i) {
    KZERO_REQUIRE(
        table.targets[i] > 0, ExitCode::files,
        "{}: document {} (counted from 0), the {} answer of pair {}, has no target; write "
        "the file again",
        path(), i, i % 2 == 0 ? "chosen" : "rejected", i / 2);
  }
  for (Index i = 0; i < counts_.documents; i += 2) {
    const Index length = table.starts[i + 2] - table.starts[i];
    KZERO_REQUIRE(length <= sequence, ExitCode::files,
                  "{}: pair {} (counted from 0) has {} tokens in its two documents, more than "
                  "model.sequence = {}; raise model.sequence, or write the file again with long "
                  "pairs left out",
                  path(), i / 2, length, sequence);
  }
}

DocumentTable DocumentFile::scan(Index sequence, Index vocab) const {
  DocumentTable table;
  table.starts = read_starts();
  table.weights = read_weights();
  check_lengths(table.starts, sequence);
  table.targets.resize(static_cast<std::size_t>(counts_.documents));
  DocumentScan scan(path(), vocab, table);
  Digest content;
  std::vector<std::uint32_t> buffer(
      std::min(static_cast<std::size_t>(counts_.tokens), words_scanned));
  for (Index begin = 0; begin < counts_.tokens; begin += std::ssize(buffer)) {
    const auto words = std::span(buffer).first(
        static_cast<std::size_t>(std::min<Index>(std::ssize(buffer), counts_.tokens - begin)));
    load(words, counts_.token_offset() + 4 * begin);
    scan.add(words);
    content.update(std::as_bytes(words));
  }
  scan.finish();
  if (counts_.is_paired) check_pairs(table, sequence);
  table.content = content.value();
  return table;
}

void DocumentFile::read(Index begin, Index count, Index vocab, Index expected, Token* inputs,
                        Token* targets) const {
  std::array<std::uint32_t, words_at_once> buffer;
  WordSums sums;
  for (Index done = 0; done < count;) {
    const auto words = std::span(buffer).first(
        static_cast<std::size_t>(std::min<Index>(count - done, std::ssize(buffer))));
    load(words, counts_.token_offset() + 4 * (begin + done));
    for (const std::uint32_t word : words) {
      const auto token = static_cast<Token>(token_of(word));
      inputs[done] = token;
      if (done > 0) targets[done - 1] = target_of(word) == 1 ? token : no_target;
      ++done;
    }
    const WordSums here = sums_of(words);
    sums = {std::max(sums.largest, here.largest), sums.targets + here.targets};
  }
  targets[count - 1] = no_target;
  KZERO_REQUIRE(
      sums.largest < vocab && sums.targets == expected, ExitCode::files,
      "{}: tokens {} to {} (counted from 0) have {} targets and are at most {}, but had {} "
      "targets below model.vocab = {}; the file was overwritten while the run was using "
      "it: restore it and start again",
      path(), begin, begin + count - 1, sums.targets, sums.largest, expected, vocab);
}

namespace {

constexpr std::string_view document_magic = "KZERODOC";
constexpr std::uint32_t document_version = 1;
constexpr Index start_bytes = 8, marked_token_bytes = 4;

struct DocumentHead {
  std::uint32_t version, kind;
  std::uint64_t tokens, documents;
};
constexpr std::uint32_t pairs_kind = 1, weights_kind = 2;  // kinds, 0 for documents without weights
constexpr std::size_t described_bytes = document_magic.size() + sizeof(DocumentHead);
constexpr std::size_t kind_at = document_magic.size() + sizeof(std::uint32_t);

}  // namespace

bool is_document_file(std::span<const std::byte> head) {
  return head.size() >= document_magic.size() &&
         std::memcmp(head.data(), document_magic.data(), document_magic.size()) == 0;
}

bool is_pair_file(std::span<const std::byte> head) {
  return is_document_file(head) && head.size() > kind_at &&
         (head[kind_at] & std::byte{pairs_kind}) != std::byte{0};
}

DocumentCounts document_counts(const std::string& path, std::span<const std::byte> head,
                               Index bytes) {
  KZERO_REQUIRE(is_document_file(head), ExitCode::files,
                "{}: does not begin with \"{}\", as a file of format \"documents\" does", path,
                document_magic);
  KZERO_REQUIRE(std::ssize(head) >= document_header_bytes, ExitCode::files,
                "{}: {} bytes are too short for the {} byte header of format \"documents\"", path,
                bytes, document_header_bytes);
  DocumentHead found{};
  std::memcpy(&found, head.data() + document_magic.size(), sizeof found);
  const auto rest = head.subspan(described_bytes, document_header_bytes - described_bytes);
  const bool has_more = found.kind > (pairs_kind | weights_kind) ||
                        std::ranges::any_of(rest, [](std::byte b) { return b != std::byte{0}; });
  KZERO_REQUIRE(found.version == document_version && !has_more, ExitCode::files,
                "{}: is version {}{} of format \"documents\", but only version {} is read", path,
                found.version, has_more ? " with unknown fields" : "", document_version);
  KZERO_REQUIRE(found.kind != (pairs_kind | weights_kind), ExitCode::files,
                "{}: is marked as pairs with weights (3 in bytes 12 to 15), but only documents "
                "without pairs have weights (2); write it again",
                path);
  const bool is_possible = found.documents <= static_cast<std::uint64_t>(bytes / start_bytes) &&
                           found.tokens <= static_cast<std::uint64_t>(bytes / marked_token_bytes);
  DocumentCounts counts;
  if (is_possible) counts = {static_cast<Index>(found.tokens), static_cast<Index>(found.documents)};
  counts.is_paired = found.kind == pairs_kind;
  counts.is_weighted = found.kind == weights_kind;
  KZERO_REQUIRE(
      is_possible && bytes == counts.token_offset() + marked_token_bytes * counts.tokens,
      ExitCode::files,
      "{}: its header counts {} tokens in {} documents, which do not fit the {} bytes of the file; "
      "it is truncated or damaged: write it again",
      path, found.tokens, found.documents, bytes);
  KZERO_REQUIRE(counts.documents > 0, ExitCode::files, "{}: has no documents", path);
  KZERO_REQUIRE(!counts.is_paired || counts.documents % 2 == 0, ExitCode::files,
                "{}: has {} documents, but a file of pairs has a rejected answer for each chosen "
                "one; write it again",
                path, counts.documents);
  return counts;
}

}  // namespace kzero::data

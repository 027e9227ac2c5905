#include "data/document_header.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/error.hpp"

namespace kzero::data {

namespace {

constexpr std::string_view document_magic = "KZERODOC";
constexpr std::uint32_t document_version = 1;
constexpr Index start_bytes = 8, marked_token_bytes = 4;

struct DocumentHead {
  std::uint32_t version, zero;
  std::uint64_t tokens, documents;
};
constexpr std::size_t described_bytes = document_magic.size() + sizeof(DocumentHead);

}  // namespace

bool is_document_file(std::span<const std::byte> head) {
  return head.size() >= document_magic.size() &&
         std::memcmp(head.data(), document_magic.data(), document_magic.size()) == 0;
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
  const bool has_more =
      found.zero != 0 || std::ranges::any_of(rest, [](std::byte b) { return b != std::byte{0}; });
  KZERO_REQUIRE(found.version == document_version && !has_more, ExitCode::files,
                "{}: is version {}{} of format \"documents\", but only version {} is read", path,
                found.version, has_more ? " with unknown fields" : "", document_version);
  const bool is_possible = found.documents <= static_cast<std::uint64_t>(bytes / start_bytes) &&
                           found.tokens <= static_cast<std::uint64_t>(bytes / marked_token_bytes);
  DocumentCounts counts;
  if (is_possible) counts = {static_cast<Index>(found.tokens), static_cast<Index>(found.documents)};
  KZERO_REQUIRE(
      is_possible && bytes == counts.token_offset() + marked_token_bytes * counts.tokens,
      ExitCode::files,
      "{}: its header counts {} tokens in {} documents, which do not fit the {} bytes of the file; "
      "it is truncated or damaged: write it again",
      path, found.tokens, found.documents, bytes);
  KZERO_REQUIRE(counts.documents > 0, ExitCode::files, "{}: has no documents", path);
  return counts;
}

}  // namespace kzero::data

#include "data/teacher_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "deck/config.hpp"

namespace kzero::data {

namespace {

constexpr std::string_view teacher_magic = "KZEROTOP";
constexpr std::uint32_t teacher_version = 1;
constexpr std::size_t teacher_header_bytes = 256;
constexpr Index teacher_buffer_bytes = Index{1} << 18;
constexpr const char* write_teacher_again = "write it again with `kzero evaluate --top`";

struct TeacherHead {
  char magic[teacher_magic.size()];
  std::uint32_t version, top;
  std::uint64_t positions, vocab, sequence, model, tokenizer, content;
  std::uint64_t checksum;  // of the bytes before it
};
static_assert(sizeof(TeacherHead) == 72, "there is no padding in the file");

std::uint64_t checksum_of(const TeacherHead& head) {
  return checksum(std::as_bytes(std::span(&head, 1)).first(offsetof(TeacherHead, checksum)));
}

}  // namespace

std::vector<std::byte> teacher_header(const TeacherFacts& facts) {
  TeacherHead head{{},
                   teacher_version,
                   static_cast<std::uint32_t>(facts.top),
                   static_cast<std::uint64_t>(facts.positions),
                   static_cast<std::uint64_t>(facts.vocab),
                   static_cast<std::uint64_t>(facts.sequence),
                   facts.model,
                   facts.tokenizer,
                   facts.content,
                   0};
  std::ranges::copy(teacher_magic, head.magic);
  head.checksum = checksum_of(head);
  std::vector<std::byte> bytes(teacher_header_bytes);
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}

std::string teacher_positions(std::span<const Token> tokens, std::span<const float> ln_p,
                              Index top) {
  const auto count = static_cast<std::size_t>(top);
  const auto each = static_cast<std::size_t>(deck::teacher_position_bytes(top));
  std::string bytes(tokens.size() / count * each, '\0');
  char* to = bytes.data();
  for (std::size_t at = 0; at < tokens.size(); at += count, to += each) {
    std::memcpy(to, tokens.data() + at, 4 * count);
    std::memcpy(to + 4 * count, ln_p.data() + at, 4 * count);
    const std::uint64_t sum = checksum(std::as_bytes(std::span(to, 8 * count)));
    std::memcpy(to + 8 * count, &sum, sizeof sum);
  }
  return bytes;
}

TeacherFile::TeacherFile(const std::string& path) : file_(path) {
  struct stat status {};
  if (!file_.open(status)) {
    const int problem = errno;
    fail(ExitCode::files, "{}: cannot be opened for reading: {}", printable(path),
         std::strerror(problem));
  }
  std::array<std::byte, teacher_header_bytes> bytes{};
  const bool is_whole = S_ISREG(status.st_mode) && file_.read(bytes, 0) == std::ssize(bytes);
  TeacherHead head{};
  std::memcpy(&head, bytes.data(), sizeof head);
  KZERO_REQUIRE(is_whole && std::string_view(head.magic, teacher_magic.size()) == teacher_magic,
                ExitCode::files,
                "{}: is not a file of a teacher's probabilities, which `kzero evaluate MODEL FILE "
                "--top K --out OUT` writes",
                printable(path));
  KZERO_REQUIRE(head.version == teacher_version, ExitCode::files,
                "{}: is version {} of a file of a teacher's probabilities, but only version {} is "
                "read",
                printable(path), head.version, teacher_version);
  KZERO_REQUIRE(head.checksum == checksum_of(head) && head.top > 0, ExitCode::files,
                "{}: its header is damaged; {}", printable(path), write_teacher_again);
  const Index each = deck::teacher_position_bytes(head.top);
  const Index there = status.st_size - static_cast<Index>(teacher_header_bytes);
  KZERO_REQUIRE(there % each == 0 && static_cast<std::uint64_t>(there / each) == head.positions,
                ExitCode::files,
                "{}: its header counts {} positions of {} bytes, which do not fit the {} bytes of "
                "the file; it is truncated or damaged: {}",
                printable(path), head.positions, each, status.st_size, write_teacher_again);
  const auto index = [](std::uint64_t value) { return static_cast<Index>(value); };
  facts_ = {static_cast<Index>(head.top),
            index(head.positions),
            index(head.vocab),
            index(head.sequence),
            head.model,
            head.tokenizer,
            head.content};
  header_digest_ = head.checksum;
  buffer_.resize(static_cast<std::size_t>(std::max<Index>(1, teacher_buffer_bytes / each) * each));
}

void TeacherFile::require(Index top, Index positions, Index vocab, Index sequence) const {
  const std::string name = printable(path());
  KZERO_REQUIRE(facts_.vocab == vocab, ExitCode::files,
                "{}: is of a teacher with {} tokens, but model.vocab = {}; a teacher needs the "
                "student's tokenizer",
                name, facts_.vocab, vocab);
  KZERO_REQUIRE(facts_.top == top, ExitCode::files,
                "{}: has {} tokens of each position, but distill.top = {}; set distill.top = {}, "
                "or {}",
                name, facts_.top, top, facts_.top, write_teacher_again);
  const auto kind = [](Index of) {
    return of == 0 ? std::string("documents") : fmt::format("sequences of {} tokens", of);
  };
  KZERO_REQUIRE(facts_.sequence == sequence, ExitCode::files,
                "{}: its teacher read {}, but the training reads {}; {} (--sequence)", name,
                kind(facts_.sequence), kind(sequence), write_teacher_again);
  KZERO_REQUIRE(facts_.positions == positions, ExitCode::files,
                "{}: has {} positions, but the data has {}; it is of other data: {}", name,
                facts_.positions, positions, write_teacher_again);
}

void TeacherFile::check_position(Index position, std::span<const std::byte> bytes,
                                 const Token* tokens, const float* ln_p) const {
  std::uint64_t sum = 0;
  const auto values = bytes.first(bytes.size() - sizeof sum);
  std::memcpy(&sum, bytes.data() + values.size(), sizeof sum);
  KZERO_REQUIRE(checksum(values) == sum, ExitCode::files, "{}: position {} is damaged; {}",
                printable(path()), position, write_teacher_again);
  for (Index j = 0; j < facts_.top; ++j) {
    KZERO_REQUIRE(tokens[j] >= 0 && tokens[j] < facts_.vocab, ExitCode::files,
                  "{}: position {} has token {}, but its vocabulary allows 0 to {}; {}",
                  printable(path()), position, tokens[j], facts_.vocab - 1, write_teacher_again);
    KZERO_REQUIRE(std::isfinite(ln_p[j]) && ln_p[j] <= 0, ExitCode::files,
                  "{}: position {} has ln p = {} of token {}, but it must be finite and at most 0; "
                  "{}",
                  printable(path()), position, ln_p[j], tokens[j], write_teacher_again);
  }
}

void TeacherFile::read(Index first, Index count, Token* tokens, float* ln_p) const {
  const auto top = static_cast<std::size_t>(facts_.top);
  const auto each = static_cast<std::size_t>(deck::teacher_position_bytes(facts_.top));
  const auto at_once = static_cast<Index>(buffer_.size() / each);
  for (Index done = 0; done < count; done += at_once) {
    const Index here = std::min(at_once, count - done);
    const auto bytes = std::span(buffer_).first(static_cast<std::size_t>(here) * each);
    const Index offset =
        static_cast<Index>(teacher_header_bytes) + (first + done) * static_cast<Index>(each);
    KZERO_REQUIRE(file_.read(bytes, offset) == std::ssize(bytes), ExitCode::files,
                  "{}: was truncated while it was in use; restore it and start again",
                  printable(path()));
    for (Index i = 0; i < here; ++i, tokens += top, ln_p += top) {
      const auto one = bytes.subspan(static_cast<std::size_t>(i) * each, each);
      std::memcpy(tokens, one.data(), 4 * top);
      std::memcpy(ln_p, one.data() + 4 * top, 4 * top);
      check_position(first + done + i, one, tokens, ln_p);
    }
  }
}

}  // namespace kzero::data

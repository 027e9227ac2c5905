#include "data/choice_file.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "data/llmc_header.hpp"

namespace kzero::data {

namespace {

constexpr std::int32_t choice_magic = 20240522, choice_version = 1;
constexpr std::uint16_t start_of_example = 65535;

using Header = std::array<std::int32_t, llmc_header_bytes / 4>;

/// The 16-bit integers of one file, read in order.
class Words {
 public:
  Words(const std::string& path, std::vector<std::uint16_t> words, Index vocab)
      : path_(path), words_(std::move(words)), vocab_(vocab) {}

  Index position() const { return at_; }
  Index left() const { return std::ssize(words_) - at_; }
  void begin(Index example) { example_ = example; }

  Index take(const char* what) {
    require(left() > 0, fmt::format("ends before {}", what));
    return words_[at_++];
  }

  std::vector<Token> take_tokens(const char* what) {
    const Index count = take("the number of tokens");
    require(count > 0, fmt::format("{} has no tokens", what));
    require(count <= left(),
            fmt::format("{} has {} tokens, but only {} follow", what, count, left()));
    std::vector<Token> tokens;
    for (Index i = 0; i < count; ++i) {
      const Index token = take(what);
      require(token < vocab_,
              fmt::format("{} has token {}, but the model's vocabulary allows 0 to {}", what, token,
                          vocab_ - 1));
      tokens.push_back(static_cast<Token>(token));
    }
    return tokens;
  }

  void require(bool is_right, const std::string& problem) const {
    KZERO_REQUIRE(is_right, ExitCode::files, "{}: example {} (counted from 0), byte {}: {}", path_,
                  example_, llmc_header_bytes + 2 * at_, problem);
  }

 private:
  const std::string& path_;
  std::vector<std::uint16_t> words_;
  Index vocab_, at_ = 0, example_ = 0;
};

std::string load(const std::string& path) {
  using enum Loaded::State;
  Loaded file = try_load(path);
  KZERO_REQUIRE(file.state != not_regular, ExitCode::files, "{}: is not a regular file", path);
  KZERO_REQUIRE(file.state == good, ExitCode::files, "{}: cannot be opened for reading: {}", path,
                std::strerror(file.error));
  return std::move(file.bytes);
}

Header read_header(std::span<const std::byte> bytes, const std::string& path) {
  Header header{};
  KZERO_REQUIRE(bytes.size() >= llmc_header_bytes && is_choice_file(bytes), ExitCode::files,
                "{}: has no header of llm.c's choice format, {} bytes that begin with {}", path,
                llmc_header_bytes, choice_magic);
  std::memcpy(header.data(), bytes.data(), llmc_header_bytes);
  KZERO_REQUIRE(header[1] == choice_version, ExitCode::files,
                "{}: is version {} of llm.c's choice format, but only version {} is read", path,
                header[1], choice_version);
  KZERO_REQUIRE(header[2] > 0, ExitCode::files, "{}: its header counts {} examples", path,
                header[2]);
  return header;
}

std::vector<std::uint16_t> words_of(std::span<const std::byte> bytes, const std::string& path) {
  KZERO_REQUIRE(bytes.size() % 2 == 0, ExitCode::files,
                "{}: has an odd number of bytes; it is truncated or damaged", path);
  std::vector<std::uint16_t> words(bytes.size() / 2);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

ChoiceExample read_example(Words& words) {
  const Index start = words.position();
  words.require(words.take("an example") == start_of_example, "does not begin with 65535");
  const Index bytes = words.take("its bytes");
  words.take("its number");
  ChoiceExample example;
  example.label = words.take("its label");
  const Index endings = words.take("the number of endings");
  words.require(endings >= 2, fmt::format("has {} endings, but needs at least 2", endings));
  words.require(example.label < endings,
                fmt::format("has label {}, but {} endings", example.label, endings));
  example.context = words.take_tokens("its context");
  for (Index i = 0; i < endings; ++i) example.endings.push_back(words.take_tokens("an ending"));
  const Index found = 2 * (words.position() - start);
  words.require(found == bytes, fmt::format("declares {} bytes, but has {}", bytes, found));
  return example;
}

}  // namespace

bool is_choice_file(std::span<const std::byte> head) {
  std::int32_t magic = 0;
  if (head.size() < sizeof magic) return false;
  std::memcpy(&magic, head.data(), sizeof magic);
  return magic == choice_magic;
}

std::vector<ChoiceExample> read_choices(const std::string& path, Index vocab) {
  const std::string file = load(path);
  const auto bytes = std::as_bytes(std::span(file));
  const Header header = read_header(bytes, path);
  Words words(path, words_of(bytes.subspan(llmc_header_bytes), path), vocab);
  std::vector<ChoiceExample> examples;
  for (Index i = 0; i < header[2]; ++i) {
    words.begin(i);
    examples.push_back(read_example(words));
  }
  KZERO_REQUIRE(words.left() == 0, ExitCode::files,
                "{}: its header counts {} examples, but {} bytes follow them", path, header[2],
                2 * words.left());
  return examples;
}

Index longest_row(const std::vector<ChoiceExample>& examples) {
  std::size_t most = 0;
  for (const ChoiceExample& example : examples) {
    for (const auto& ending : example.endings)
      most = std::max(most, example.context.size() + ending.size());
  }
  return static_cast<Index>(most);
}

}  // namespace kzero::data

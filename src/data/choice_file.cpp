#include "data/choice_file.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "data/formats.hpp"

namespace kzero::data {

namespace {

constexpr std::int32_t choice_magic = 20240522;

using Header = std::array<std::int32_t, llmc_header_bytes / 4>;

/// The integers of one file, of `width` bytes each, read in order.
class Words {
 public:
  Words(const std::string& path, std::vector<std::uint32_t> words, Index width, Index vocab)
      : path_(path), words_(std::move(words)), width_(width), vocab_(vocab) {}

  Index width() const { return width_; }
  /// The largest integer, which begins each example.
  Index start_of_example() const { return width_ == 2 ? 0xffff : 0xffffffff; }
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
                  example_, llmc_header_bytes + width_ * at_, problem);
  }

 private:
  const std::string& path_;
  std::vector<std::uint32_t> words_;
  Index width_, vocab_, at_ = 0, example_ = 0;
};

std::string load(const std::string& path) {
  using enum Loaded::State;
  constexpr Index max_bytes = Index{1} << 30;  // HellaSwag has 4 MB
  Loaded file = try_load(path, max_bytes);
  KZERO_REQUIRE(file.state != not_regular, ExitCode::files, "{}: is not a regular file", path);
  KZERO_REQUIRE(file.state != too_large, ExitCode::files,
                "{}: has {} bytes; a file of choices has {} at most", path, file.file_bytes,
                max_bytes);
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
  KZERO_REQUIRE(header[1] == 1 || header[1] == 2, ExitCode::files,
                "{}: is version {} of the choice format, but only versions 1 and 2 are read", path,
                header[1]);
  KZERO_REQUIRE(header[2] > 0, ExitCode::files, "{}: its header counts {} examples", path,
                header[2]);
  return header;
}

/// The integers of type T, as 32-bit ones.
template <class T>
std::vector<std::uint32_t> words_of(std::span<const std::byte> bytes, const std::string& path) {
  KZERO_REQUIRE(bytes.size() % sizeof(T) == 0, ExitCode::files,
                "{}: its bytes are no multiple of {}; it is truncated or damaged", path, sizeof(T));
  std::vector<T> words(bytes.size() / sizeof(T));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return {words.begin(), words.end()};
}

ChoiceExample read_example(Words& words) {
  const Index start = words.position();
  words.require(words.take("an example") == words.start_of_example(),
                fmt::format("does not begin with {}", words.start_of_example()));
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
  const Index found = words.width() * (words.position() - start);
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
  const auto stream = bytes.subspan(llmc_header_bytes);
  Words words = header[1] == 1 ? Words(path, words_of<std::uint16_t>(stream, path), 2, vocab)
                               : Words(path, words_of<std::uint32_t>(stream, path), 4, vocab);
  std::vector<ChoiceExample> examples;
  for (Index i = 0; i < header[2]; ++i) {
    words.begin(i);
    examples.push_back(read_example(words));
  }
  KZERO_REQUIRE(words.left() == 0, ExitCode::files,
                "{}: its header counts {} examples, but {} bytes follow them", path, header[2],
                words.width() * words.left());
  return examples;
}

Index longest_row(const std::vector<ChoiceExample>& examples) {
  std::size_t longest = 0;
  for (const ChoiceExample& example : examples) {
    for (const auto& ending : example.endings)
      longest = std::max(longest, example.context.size() + ending.size());
  }
  return static_cast<Index>(longest);
}

}  // namespace kzero::data

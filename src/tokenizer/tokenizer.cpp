#include "tokenizer/tokenizer.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/utf8.hpp"
#include "tokenizer/unicode.hpp"

namespace kzero::tokenizer {

namespace {

constexpr Index largest_file = Index{256} << 20;

std::string read_text(const std::string& path) {
  using enum Loaded::State;
  Loaded file = try_load(path, largest_file);
  KZERO_REQUIRE(file.state != missing, ExitCode::files, "{}: there is no such file", path);
  KZERO_REQUIRE(file.state != not_regular, ExitCode::files, "{}: is not a regular file", path);
  KZERO_REQUIRE(file.state != too_large, ExitCode::files,
                "{}: has {}, but a tokenizer.json has {} at most", path,
                format_bytes(file.file_bytes), format_bytes(largest_file));
  KZERO_REQUIRE(file.state == good, ExitCode::files, "{}: cannot be read", path);
  return std::move(file.bytes);
}

std::string file_in(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::is_directory(path, code)) return path;
  return (std::filesystem::path(path) / "tokenizer.json").string();
}

}  // namespace

/// The working memory of one call of encode(). Caches the tokens of words, since most words of a
/// text repeat; the cache is limited to a few MiB.
class Tokenizer::Encoding {
 public:
  static constexpr std::size_t longest_kept = 64;
  static constexpr std::size_t max_kept = std::size_t{1} << 16U;

  struct Tokens {
    std::size_t begin, end;  // of `pool`
  };
  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard's name
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  std::vector<Token> tokens{};
  std::vector<Token> pool{};
  std::unordered_map<std::string, Tokens, Hash, std::equal_to<>> kept{};
  std::vector<Token> symbols{};
  Merges::Scratch scratch{};
};

Tokenizer::Tokenizer(const std::string& path)
    : Tokenizer(file_in(path), read_text(file_in(path))) {}

Tokenizer::Tokenizer(const std::string& path, std::string_view json)
    : Tokenizer(read_definition(path, json)) {}

Tokenizer::Tokenizer(Definition definition)
    : steps_(std::move(definition.steps)),
      is_composed_(definition.is_composed),
      marks_(definition.marks),
      takes_whole_words_(definition.takes_whole_words),
      unknown_(definition.unknown),
      joins_unknown_(definition.joins_unknown),
      frame_(std::move(definition.frame)),
      merges_(definition.merges) {
  if (marks_) pieces_.emplace(definition);
  for (auto& entry : definition.vocabulary) put(entry.id, entry.bytes, false);
  std::vector<AddedTokens::Entry> first, second;
  for (auto& token : definition.added) {
    // Such a token is found with the mark before it.
    const std::string found = token.is_normalized ? normalized(token.content) : token.content;
    put(token.id, marks_ ? bytes_of_piece(found) : token.content, token.is_special);
    added_.emplace(token.content, token.id);
    auto& entries = token.is_normalized ? second : first;
    entries.push_back(
        {found, token.id, token.is_single_word, token.strips_left, token.strips_right});
  }
  first_ = AddedTokens(std::move(first));
  second_ = AddedTokens(std::move(second));
  if (pieces_) return;
  for (const auto& entry : definition.vocabulary) {  // entries_ does not grow any more
    if (entry.is_word) words_.emplace(entries_[entry.id].bytes, entry.id);
  }
  for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
    const auto found = words_.find(std::string(1, static_cast<char>(byte)));
    if (found != words_.end()) bytes_[byte] = found->second;
  }
}

void Tokenizer::put(Token id, std::string bytes, bool is_special) {
  const auto at = static_cast<std::size_t>(id);
  if (at >= entries_.size()) entries_.resize(at + 1);
  entries_[at] = {std::move(bytes), true, is_special};
}

std::vector<Token> Tokenizer::encode(std::string_view text) const {
  const auto invalid = first_invalid_byte(text);
  KZERO_REQUIRE(!invalid, ExitCode::files, "the text is not UTF-8: byte {} is 0x{:02x}", *invalid,
                static_cast<unsigned>(static_cast<unsigned char>(text[*invalid])));
  constexpr auto max = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());
  const std::size_t longest = marks_ ? max / space_mark.size() - 1 : max;
  KZERO_REQUIRE(text.size() < longest, ExitCode::files,
                "a text of {} is too long to be encoded at once; the limit is {}",
                format_bytes(static_cast<Index>(text.size())),
                format_bytes(static_cast<Index>(longest)));
  Encoding encoding;
  first_.for_each_part(
      text,
      [&](std::size_t begin, std::size_t end) {
        encode_between(text.substr(begin, end - begin), begin == 0, encoding);
      },
      [&](Token token) { encoding.tokens.push_back(token); });
  return std::move(encoding.tokens);
}

std::vector<Token> Tokenizer::encode_framed(std::string_view text) const {
  std::vector<Token> tokens = encode(text);
  const bool is_begun = tokens.size() >= frame_.before.size() &&
                        std::equal(frame_.before.begin(), frame_.before.end(), tokens.begin());
  if (!is_begun) tokens.insert(tokens.begin(), frame_.before.begin(), frame_.before.end());
  tokens.insert(tokens.end(), frame_.after.begin(), frame_.after.end());
  return tokens;
}

std::string Tokenizer::normalized(std::string_view raw) const {
  if (is_composed_) return composed(raw);
  const bool is_marked = marks_ && !marks_->is_late;
  return is_marked ? marked(raw, marks_->first == FirstMark::always) : std::string(raw);
}

/// Encodes text between added tokens that are matched before normalization. `is_top`: it begins the
/// whole text.
void Tokenizer::encode_between(std::string_view raw, bool is_top, Encoding& encoding) const {
  if (raw.empty()) return;
  const bool is_changed = is_composed_ || (marks_ && !marks_->is_late);
  const std::string changed = is_changed ? normalized(raw) : std::string();
  const std::string_view text = is_changed ? std::string_view(changed) : raw;
  second_.for_each_part(
      text,
      [&](std::size_t begin, std::size_t end) {
        encode_words(text.substr(begin, end - begin), is_top && begin == 0, encoding);
      },
      [&](Token token) { encoding.tokens.push_back(token); });
}

/// Encodes text without added tokens.
void Tokenizer::encode_words(std::string_view text, bool is_top, Encoding& encoding) const {
  if (text.empty()) return;
  std::string changed;
  if (marks_ && marks_->is_late) {
    const bool may_have = marks_->first == FirstMark::if_missing ||
                          (marks_->first == FirstMark::if_missing_at_the_top && is_top);
    changed = marked(text, may_have && !text.starts_with(' ') && !text.starts_with(space_mark));
    text = changed;
  }
  for_each_word(steps_, text, [&](std::string_view word) { encode_word(word, encoding); });
}

/// The tokens of a word's bytes or characters, one after the other.
void Tokenizer::take_symbols(std::string_view word, std::vector<Token>& symbols) const {
  symbols.clear();
  if (pieces_) return pieces_->append_symbols(word, symbols);
  bool was_unknown = false;
  for (const char byte : word) {
    const auto known = bytes_[static_cast<unsigned char>(byte)];
    const auto token = known ? known : unknown_;
    if (token && (known || !was_unknown || !joins_unknown_)) symbols.push_back(*token);
    was_unknown = !known;
  }
}

/// The token that a whole word is.
std::optional<Token> Tokenizer::find_word(std::string_view word) const {
  if (pieces_) return pieces_->find(word);
  const auto found = words_.find(word);
  return found == words_.end() ? std::nullopt : std::optional(found->second);
}

void Tokenizer::encode_word(std::string_view word, Encoding& encoding) const {
  if (!pieces_) return merge_word(word, encoding);
  if (const auto whole = takes_whole_words_ ? find_word(word) : std::nullopt) {
    encoding.tokens.push_back(*whole);
    return;
  }
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t end = pieces_->part_end(word, at);
    merge_word(word.substr(at, end - at), encoding);
    at = end;
  }
}

void Tokenizer::merge_word(std::string_view word, Encoding& encoding) const {
  if (const auto kept = encoding.kept.find(word); kept != encoding.kept.end()) {
    const auto first = encoding.pool.begin();
    encoding.tokens.insert(encoding.tokens.end(), first + static_cast<Index>(kept->second.begin),
                           first + static_cast<Index>(kept->second.end));
    return;
  }
  const std::size_t begin = encoding.tokens.size();
  const auto whole = takes_whole_words_ && !pieces_ ? find_word(word) : std::nullopt;
  if (whole) {
    encoding.tokens.push_back(*whole);
  } else {
    take_symbols(word, encoding.symbols);
    merges_.apply(encoding.symbols, encoding.tokens, encoding.scratch);
  }
  if (word.size() > Encoding::longest_kept || encoding.kept.size() >= Encoding::max_kept) return;
  const std::size_t pooled = encoding.pool.size();
  encoding.pool.insert(encoding.pool.end(), encoding.tokens.begin() + static_cast<Index>(begin),
                       encoding.tokens.end());
  encoding.kept.emplace(word, Encoding::Tokens{pooled, encoding.pool.size()});
}

std::string Tokenizer::decode(std::span<const Token> tokens, bool skip_special) const {
  std::string text;
  for (const Token token : tokens) {
    const std::string_view part = bytes(token);
    if (!skip_special || !is_special(token)) text += part;
  }
  if (marks_ && marks_->is_stripped && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

std::string_view Tokenizer::bytes(Token token) const {
  const auto at = static_cast<std::size_t>(token);
  KZERO_REQUIRE(token >= 0 && at < entries_.size() && entries_[at].is_used, ExitCode::files,
                "the tokenizer has no token {}: its ids are below {}", token, entries_.size());
  return entries_[at].bytes;
}

bool Tokenizer::is_special(Token token) const {
  const auto at = static_cast<std::size_t>(token);
  return token >= 0 && at < entries_.size() && entries_[at].is_special;
}

std::optional<Token> Tokenizer::find(std::string_view content) const {
  if (const auto added = added_.find(std::string(content)); added != added_.end()) {
    return added->second;
  }
  return find_word(content);
}

}  // namespace kzero::tokenizer

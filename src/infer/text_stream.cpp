#include "infer/text_stream.hpp"

#include <algorithm>

namespace kzero::infer {

namespace {

/// The first `length` bytes of a text, at least one. If the state is valid, they are one character.
/// Otherwise they are replaced together, as the Unicode standard recommends (version 15, section
/// 3.9, U+FFFD Substitution of Maximal Subparts). Incomplete: valid so far, but the text ends.
struct Character {
  std::size_t length = 1;
  enum { valid, invalid, incomplete } state = invalid;
};

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, Character::valid};
  if (lead < 0xC2 || lead > 0xF4) return {1, Character::invalid};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {i, Character::incomplete};
    // The second byte's range is narrower after four of the lead bytes. This excludes overlong
    // forms, surrogates, and codes beyond U+10FFFF.
    const unsigned low = i == 1 && lead == 0xE0 ? 0xA0 : i == 1 && lead == 0xF0 ? 0x90 : 0x80;
    const unsigned high = i == 1 && lead == 0xED ? 0x9F : i == 1 && lead == 0xF4 ? 0x8F : 0xBF;
    if (byte(i) < low || byte(i) > high) return {i, Character::invalid};
  }
  return {length, Character::valid};
}

/// The number of bytes at the end of `text` that are the beginning of `stop`.
std::size_t overlap(std::string_view text, std::string_view stop) {
  for (std::size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n) {
    if (text.ends_with(stop.substr(0, n))) return n;
  }
  return 0;
}

}  // namespace

/// The number of bytes before the first at which a stop text may begin.
std::size_t TextStream::certain() const {
  std::size_t held = 0;
  for (const std::string& stop : stops_) held = std::max(held, overlap(pending_, stop));
  return pending_.size() - held;
}

/// Removes complete characters from the first `count` bytes and returns them; at the end incomplete
/// ones too.
std::string TextStream::take(std::size_t count, bool is_end) {
  std::string text;
  std::string_view rest = std::string_view(pending_).substr(0, count);
  while (!rest.empty()) {
    const Character c = first_character(rest);
    if (c.state == Character::incomplete && !is_end) break;
    text +=
        c.state == Character::valid ? rest.substr(0, c.length) : std::string_view("\xEF\xBF\xBD");
    rest.remove_prefix(c.length);
  }
  pending_.erase(0, count - rest.size());
  return text;
}

std::string TextStream::add(std::string_view bytes) {
  if (has_stopped_) return {};
  pending_ += bytes;
  std::size_t end = std::string::npos;
  for (const std::string& stop : stops_) end = std::min(end, pending_.find(stop));
  if (end == std::string::npos) return take(certain(), false);
  has_stopped_ = true;
  pending_.resize(end);
  return take(end, true);
}

std::string TextStream::finish() { return take(pending_.size(), true); }

}  // namespace kzero::infer

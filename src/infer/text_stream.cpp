#include "infer/text_stream.hpp"

#include <algorithm>

#include "base/utf8.hpp"

namespace kzero::infer {

namespace {

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
    const Utf8Character first = first_utf8_character(rest);
    if (first.is_cut && !is_end) break;
    text += first.bytes > 0 ? rest.substr(0, first.bytes) : std::string_view("\xEF\xBF\xBD");
    rest.remove_prefix(first.bytes > 0 ? first.bytes : first.malformed_bytes);
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

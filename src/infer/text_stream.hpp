// Text that grows by the bytes of tokens and is returned once it is certain: a token may end within
// a character, or where a stop text may have begun.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kzero::infer {

class TextStream {
 public:
  /// `stops`: texts that end it and are not part of it; none may be empty.
  explicit TextStream(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  /// Adds bytes, unless a stop text has ended the text. Returns the part that has become certain:
  /// complete characters, with U+FFFD for bytes that are not UTF-8.
  std::string add(std::string_view bytes);

  /// Ends the text; returns the rest of it.
  std::string finish();

  bool has_stopped() const { return has_stopped_; }

 private:
  std::string take(std::size_t count, bool is_end);
  std::size_t certain() const;

  std::vector<std::string> stops_;
  std::string pending_;
  bool has_stopped_ = false;
};

}  // namespace kzero::infer

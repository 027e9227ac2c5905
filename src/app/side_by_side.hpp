// Two texts in two columns of a terminal. Accesses no terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace kzero::app {

/// The columns of a terminal that a text takes: 2 for a wide character of East Asia or an emoji, 0
/// for a combining character. The text is printable UTF-8 without line ends.
Index columns_of(std::string_view text);

/// Divides a text into lines of at most `width`, at spaces if it can. Line ends stay; other
/// control characters and bytes that are not UTF-8 are spelled out (base/printable.hpp).
/// `width` is at least 4.
std::vector<std::string> wrapped(std::string_view text, Index width);

/// The lines of a text, as wrapped() divides it. Of more than eight, the first four, "..." and the
/// last three.
std::string excerpt(std::string_view text, Index width);

/// Lines with the text `left` in the left half of `width` and `right` in the right half, with
/// " | " between them. Empty lines at the end of a text are left out.
std::string side_by_side(std::string_view left, std::string_view right, Index width);

}  // namespace kzero::app

// Makes text from outside (names in files, values of decks, arguments) safe to show on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace kzero {

/// The text with control characters (C0, DEL, C1) and bytes that are not UTF-8 spelled out: "\n",
/// "\t", "\x1b". For a name within a message.
std::string printable(std::string_view text);

/// Shortens the result to 80 bytes: for a value, of any length, within a message of one line.
std::string printable_start(std::string_view text);

/// Does the same as printable() for a message of several lines: its line ends stay.
std::string printable_lines(std::string_view text);

}  // namespace kzero

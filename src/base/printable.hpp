// Makes text from outside (names in files, values of decks, arguments) safe to show on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace kzero {

/// Spells out control characters (C0, DEL, C1) and bytes that are not UTF-8: "\n", "\t", "\x1b".
/// For a name within a message.
std::string printable(std::string_view text);

/// Shortens the result to 80 bytes: for a value of any length within a one-line message.
std::string printable_start(std::string_view text);

/// Like printable(), for a message: keeps line ends, and cuts long lines and lines beyond 200.
std::string printable_lines(std::string_view text);

}  // namespace kzero

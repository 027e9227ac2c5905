// Parses JSON text from outside within bounds, and formats JSON values for messages.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace kzero {

/// Parses a JSON text. Returns a discarded value if the text is not JSON, or nests deeper than 64
/// levels, more than any Hugging Face file does.
nlohmann::json parse_json(std::string_view text);

/// Formats a value of any length as shortened JSON, for use within a one-line message.
std::string json_shown(const nlohmann::json& value);

}  // namespace kzero

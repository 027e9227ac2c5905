// Reads JSON text from outside within bounds, and shows a value of it within a message.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace kzero {

/// The value of a JSON text; a discarded one if the text is not JSON or nests deeper than any file
/// of Hugging Face does.
nlohmann::json parse_json(std::string_view text);

/// The value as JSON, shortened: for a value of any length within a message of one line.
std::string json_shown(const nlohmann::json& value);

}  // namespace kzero

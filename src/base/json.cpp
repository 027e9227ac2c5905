#include "base/json.hpp"

#include <nlohmann/json.hpp>

#include "base/printable.hpp"

namespace kzero {

namespace {

constexpr int deepest = 64;

/// nlohmann-json 3.11.2 parses and frees any depth without recursion, but copies, compares and
/// prints values recursively: 60000 levels overflow a stack of 8 MiB. Its own callback for the
/// depth makes parsing quadratic in the number of objects.
bool nests_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > deepest) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace

nlohmann::json parse_json(std::string_view text) {
  if (nests_too_deep(text)) return nlohmann::json(nlohmann::json::value_t::discarded);
  return nlohmann::json::parse(text, nullptr, false);
}

std::string json_shown(const nlohmann::json& value) {
  constexpr std::size_t longest = 60;
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > longest) text = text.substr(0, longest) + "...";
  return printable(text);
}

}  // namespace kzero

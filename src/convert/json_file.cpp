#include "convert/json_file.hpp"

#include <nlohmann/json.hpp>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "checkpoint/files.hpp"

namespace kzero::convert {

namespace {

constexpr int deepest = 64;

/// The parser keeps its own stack, but a value costs memory at each level, and printing one
/// recurses.
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

std::string load_bounded(const std::filesystem::path& path, Index limit_bytes) {
  const checkpoint::InputFile file(path);
  const Index bytes = file.bytes();
  KZERO_REQUIRE(bytes <= limit_bytes, ExitCode::files,
                "{}: has {}; a file of its kind has {} at most", path.string(), format_bytes(bytes),
                format_bytes(limit_bytes));
  std::string text(static_cast<std::size_t>(bytes), '\0');
  text.resize(file.read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

nlohmann::json json_object(const std::filesystem::path& path, std::string_view text) {
  nlohmann::json value = parse_json(text);
  KZERO_REQUIRE(value.is_object(), ExitCode::files, "{}: is not a JSON object", path.string());
  return value;
}

nlohmann::json read_json_object(const std::filesystem::path& path, Index limit_bytes) {
  return json_object(path, load_bounded(path, limit_bytes));
}

}  // namespace kzero::convert

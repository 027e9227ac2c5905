#include "convert/json_file.hpp"

#include <nlohmann/json.hpp>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "storage/files.hpp"

namespace kzero::convert {

std::string load_bounded(const std::filesystem::path& path, Index limit_bytes) {
  const storage::InputFile file(path);
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

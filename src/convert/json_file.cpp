#include "convert/json_file.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/json.hpp"

namespace kzero::convert {

nlohmann::json json_object(const std::filesystem::path& path, std::string_view text) {
  nlohmann::json value = parse_json(text);
  KZERO_REQUIRE(value.is_object(), ExitCode::files, "{}: is not a JSON object", path.string());
  return value;
}

nlohmann::json read_json_object(const std::filesystem::path& path, Index limit_bytes) {
  return json_object(path, load_file(path, limit_bytes));
}

}  // namespace kzero::convert

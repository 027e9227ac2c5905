#include "tokenizer/rules.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"

namespace kzero::tokenizer {

const Rules::Json& Rules::at(const Json& object, const char* key) {
  static const Json missing;
  const auto found = object.find(key);
  return found == object.end() ? missing : *found;
}

void Rules::refuse(const std::string& key, const Json& value, const std::string& what) const {
  fail(ExitCode::files, "{}: {} is {}, but {}", path_, printable(key), json_shown(value), what);
}

void Rules::allow(const Json& value, const std::string& key,
                  std::initializer_list<Json> allowed) const {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return;
  std::string names;
  for (const Json& one : allowed) names += (names.empty() ? "" : " or ") + one.dump();
  refuse(key, value, "kzero reads only " + names + " there");
}

void Rules::allow_keys(const Json& object, const std::string& prefix,
                       std::initializer_list<std::string_view> known) const {
  for (const auto& item : object.items()) {
    if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
    refuse(prefix + item.key(), item.value(), "kzero knows no such rule");
  }
}

const std::string& Rules::text_of(const Json& value, const std::string& key) const {
  if (!value.is_string()) refuse(key, value, "a text is needed there");
  return value.get_ref<const std::string&>();
}

bool Rules::flag_of(const Json& object, const std::string& prefix, const char* key,
                    bool default_value) const {
  const Json& value = at(object, key);
  if (value.is_null()) return default_value;
  if (!value.is_boolean()) refuse(prefix + key, value, "true or false is needed there");
  return value.get<bool>();
}

Token Rules::id_of(const Json& value, const std::string& key) const {
  constexpr std::uint64_t max_id = 2'000'000;  // a table has an entry for each id up to the largest
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > max_id) {
    refuse(key, value, fmt::format("an id is a whole number from 0 to {}", max_id));
  }
  return value.get<Token>();
}

}  // namespace kzero::tokenizer

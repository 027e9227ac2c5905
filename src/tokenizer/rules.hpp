// Checks of values in a tokenizer.json. Messages name the file, the key, the value found and what
// is allowed.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/types.hpp"

namespace kzero::tokenizer {

/// All functions throw Error(files) for a value that is not allowed.
class Rules {
 public:
  using Json = nlohmann::json;

  /// `path` is for messages and must outlive the object.
  explicit Rules(const std::string& path) : path_(path) {}

  const std::string& path() const { return path_; }

  /// The value of a key; null if the object lacks it.
  static const Json& at(const Json& object, const char* key);

  [[noreturn]] void refuse(const std::string& key, const Json& value,
                           const std::string& what) const;

  void allow(const Json& value, const std::string& key, std::initializer_list<Json> allowed) const;
  void allow_keys(const Json& object, const std::string& prefix,
                  std::initializer_list<std::string_view> known) const;

  const std::string& text_of(const Json& value, const std::string& key) const;

  /// The value of an object's key, which is true or false; `default_value` without it.
  bool flag_of(const Json& object, const std::string& prefix, const char* key,
               bool default_value) const;

  Token id_of(const Json& value, const std::string& key) const;

 private:
  const std::string& path_;
};

}  // namespace kzero::tokenizer

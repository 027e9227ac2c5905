#include "convert/config_keys.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kzero::convert {

namespace {

using Json = nlohmann::json;

/// Converts the value to the deck key's type; monostate if its type does not fit.
deck::Value converted(const deck::Key& key, const Json& value) {
  if (value.is_boolean()) return deck::converted(key, value.get<bool>());
  if (value.is_string()) return deck::converted(key, value.get<std::string>());
  // Integers beyond 64 bits are doubles here, and no key allows them.
  if (value.is_number_unsigned() && value.get<std::uint64_t>() >> 63U) return {};
  if (value.is_number_integer()) return deck::converted(key, value.get<Index>());
  if (value.is_number()) return deck::converted(key, value.get<double>());
  return {};
}

}  // namespace

const Json& ConfigKeys::at(const char* key) const {
  static const Json missing;
  const auto found = object_->find(key);
  return found == object_->end() ? missing : *found;
}

ConfigKeys ConfigKeys::within(const char* key) const {
  return {*reading_, object_->at(key), prefix_ + key + "."};
}

ConfigReading ConfigKeys::read_apart(const std::function<void(const ConfigKeys&)>& read) const {
  ConfigReading apart{.file = reading_->file};
  read({apart, *object_, prefix_});
  return apart;
}

void ConfigKeys::add(const ConfigReading& reading) {
  std::ranges::copy(reading.implied, std::back_inserter(reading_->implied));
  std::ranges::copy(reading.problems, std::back_inserter(reading_->problems));
}

std::string ConfigKeys::describe(const std::string& key) const {
  const auto found = object_->find(key);
  return found == object_->end() ? fmt::format("{}{} is missing", prefix_, key)
                                 : fmt::format("{}{} is {}", prefix_, key, json_shown(*found));
}

void ConfigKeys::refuse(const std::string& key, const std::string& what) {
  reading_->problems.push_back(fmt::format("{}; {}", describe(key), what));
}

void ConfigKeys::refuse_value(const std::string& name, const Json& value, const std::string& what) {
  reading_->problems.push_back(
      fmt::format("{}{} is {}; {}", prefix_, name, json_shown(value), what));
}

void ConfigKeys::imply(const char* deck_key, deck::Value value, const std::string& origin) {
  reading_->implied.push_back(
      {deck_key, std::move(value), fmt::format("{}: {}", reading_->file, origin)});
}

void ConfigKeys::take(const ConfigKey& wanted, const Json& value, const std::string& what) {
  const deck::Key& key = *deck::find_key(wanted.deck);
  const deck::Value found = converted(key, value);
  const auto* count = std::get_if<Index>(&found);
  if (count != nullptr && *count < 1) {
    reading_->problems.push_back(fmt::format("{}; it must be above 0", what));
  } else if (!deck::is_allowed(key, found)) {
    reading_->problems.push_back(fmt::format("{}; {} must be {}", what, key.path, allowed(key)));
  } else {
    imply(wanted.deck, found, what);
    reading_->implied.back().is_binding = wanted.is_binding;
    reading_->implied.back().may_grow = wanted.may_grow;
  }
}

void ConfigKeys::imply(const ConfigKey& key) {
  const char* first = nullptr;
  for (const char* name : key.names) {
    const auto found = object_->find(name);
    if (found == object_->end() || (key.is_nullable && found->is_null())) continue;
    if (first == nullptr) {
      first = name;
      take(key, *found, describe(name));
    } else if (*found != at(first)) {
      refuse(name, fmt::format("it means the same as {}{}, which is {}", prefix_, first,
                               json_shown(at(first))));
    }
  }
  if (first != nullptr) return;
  if (key.default_value.is_null()) {
    refuse(key.names.front(), fmt::format("{} needs it", key.deck));
  } else {
    take(key, key.default_value,
         fmt::format("{}, which means {}", describe(key.names.front()),
                     json_shown(key.default_value)));
  }
}

Index ConfigKeys::imply_count(const ConfigKey& key) {
  const std::size_t before = reading_->implied.size();
  imply(key);
  return reading_->implied.size() > before ? std::get<Index>(reading_->implied.back().value) : 0;
}

void ConfigKeys::require(const char* key, const Json& default_value,
                         const std::vector<Json>& allowed, const std::string& what) {
  const auto found = object_->find(key);
  const Json& value = found == object_->end() ? default_value : *found;
  if (std::ranges::find(allowed, value) != allowed.end()) return;
  if (found != object_->end()) {
    refuse(key, what);
  } else {
    reading_->problems.push_back(
        fmt::format("{}, which means {}; {}", describe(key), json_shown(default_value), what));
  }
}

}  // namespace kzero::convert

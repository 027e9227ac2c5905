// Reads the keys of a config.json as values of deck keys, and collects whatever kzero cannot
// honour.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "deck/reader.hpp"

namespace kzero::convert {

/// The keys of one file that have been read so far.
struct ConfigReading {
  std::string file;  // its name in messages
  std::vector<deck::ImpliedValue> implied{};
  std::vector<std::string> problems{};  // "KEY is VALUE; what is allowed"
};

/// A key of config.json that sets a deck key.
struct ConfigKey {
  const char* deck;                // path in the deck: "model.heads"
  std::vector<const char*> names;  // the first one present counts; others must not contradict it
  nlohmann::json default_value{};  // the meaning of a missing key; null: the key is required
  bool is_nullable = false;        // null means the same as a missing key
  bool is_binding = true;          // as in deck::ImpliedValue
  bool may_grow = false;           // as in deck::ImpliedValue
};

/// One object of a config.json: the file, or an object in it.
class ConfigKeys {
 public:
  ConfigKeys(ConfigReading& reading, const nlohmann::json& object, std::string prefix = "")
      : reading_(&reading), object_(&object), prefix_(std::move(prefix)) {}

  /// Sets the deck key's value, or adds a problem if the key does not allow it. Integers must be
  /// above 0, because zeros in a deck have other meanings.
  void imply(const ConfigKey& key);

  /// Sets a value that is derived from others; `origin` names them.
  void imply(const char* deck_key, deck::Value value, const std::string& origin);

  /// Sets a count and returns it; 0 after a problem.
  Index imply_count(const ConfigKey& key);

  /// Adds a problem unless the key has one of these values. A missing key has the value
  /// `default_value`.
  void require(const char* key, const nlohmann::json& default_value,
               const std::vector<nlohmann::json>& allowed, const std::string& what);

  /// Adds a problem with the key's value.
  void refuse(const std::string& key, const std::string& what);

  /// Adds a problem with a value of this name, such as an entry of a list.
  void refuse_value(const std::string& name, const nlohmann::json& value, const std::string& what);

  /// Calls `read` with the same keys, and returns what it set and refused without adding it here.
  ConfigReading read_apart(const std::function<void(const ConfigKeys&)>& read) const;

  /// Adds what was read apart.
  void add(const ConfigReading& reading);

  bool has(const char* key) const { return object_->contains(key); }
  /// Returns the key's value; null if it is missing.
  const nlohmann::json& at(const char* key) const;

  /// The keys of the object under `key`, which must be an object.
  ConfigKeys within(const char* key) const;

  /// "PREFIX.KEY is VALUE", or a text that says that it is missing.
  std::string describe(const std::string& key) const;

 private:
  void take(const ConfigKey& key, const nlohmann::json& value, const std::string& what);

  ConfigReading* reading_;
  const nlohmann::json* object_;
  std::string prefix_;
};

}  // namespace kzero::convert

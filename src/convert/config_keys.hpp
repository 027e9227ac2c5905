// Reads the keys of a config.json as values of deck keys, and collects what kzero cannot honour.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "deck/reader.hpp"

namespace kzero::convert {

/// Keys of one file that were read so far.
struct ConfigReading {
  std::string file;  // as messages name it
  std::vector<deck::ImpliedValue> implied{};
  std::vector<std::string> problems{};  // "KEY is VALUE; what is allowed"
};

/// A key of config.json that gives a deck key its value.
struct ConfigKey {
  const char* deck;                // of the table: "model.heads"
  std::vector<const char*> names;  // the first that is there counts, and no other may contradict
  nlohmann::json usual{};          // the meaning of a missing key; null: it has to be there
  bool is_nullable = false;        // null means the same as a missing key
  bool is_binding = true;          // as in deck::ImpliedValue
};

/// One object of a config.json: the file, or an object in it.
class ConfigKeys {
 public:
  ConfigKeys(ConfigReading& reading, const nlohmann::json& object, std::string prefix = "")
      : reading_(&reading), object_(&object), prefix_(std::move(prefix)) {}

  /// Implies the deck key's value, or adds a problem if the key does not allow it. Integers have to
  /// be above 0, since the zeros of a deck mean something else.
  void imply(const ConfigKey& key);

  /// Implies a value that follows from others. `origin` says from what.
  void imply(const char* deck_key, deck::Value value, const std::string& origin);

  /// Implies a count and returns it; 0 after a problem.
  Index imply_count(const ConfigKey& key);

  /// Adds a problem unless the key has one of these values; a missing key has the `usual` one.
  void require(const char* key, const nlohmann::json& usual,
               const std::vector<nlohmann::json>& allowed, const std::string& what);

  /// Adds a problem with the key's value.
  void refuse(const std::string& key, const std::string& what);

  bool has(const char* key) const { return object_->contains(key); }
  /// Returns the key's value; null if it is missing.
  const nlohmann::json& at(const char* key) const;

  /// The keys of the object under `key`, which has to be one.
  ConfigKeys within(const char* key) const;

  /// "PREFIX.KEY is VALUE", or that it is missing.
  std::string describe(const std::string& key) const;

 private:
  void take(const ConfigKey& key, const nlohmann::json& value, const std::string& what);

  ConfigReading* reading_;
  const nlohmann::json* object_;
  std::string prefix_;
};

}  // namespace kzero::convert

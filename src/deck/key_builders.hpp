// Builders of the key table's entries: each binds a key to its field in Config.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "deck/schema.hpp"

namespace kzero::deck {

// Limits far above any use, but low enough that everything computed from the values stays in range.
inline constexpr double max_count = 1000000000;
inline constexpr double year = 365 * 86400;
inline constexpr double largest_exact =
    9007199254740992;  // largest integer that JSON and double hold exactly: 2^53

/// The names of a key's choices with their meanings: "\"bytes\": each byte is a token. ...".
template <class Field, std::size_t count>
std::string meanings(const Choice<Field> (&choices)[count]) {
  std::string text;
  for (const auto& [name, value, meaning] : choices)
    text += fmt::format("{}\"{}\": {}.", text.empty() ? "" : " ", name, meaning);
  return text;
}

/// Reads and writes one field of Config, as the type that Value uses for it.
template <class Held, class Table, class Field>
void bind(Key& key, Table Config::*table, Field Table::*field) {
  key.get = [=](const Config& config) -> Value { return static_cast<Held>(config.*table.*field); };
  key.set = [=](Config& config, const Value& value) {
    config.*table.*field = static_cast<Field>(std::get<Held>(value));
  };
}

template <class Table, class Field>
Key integer(std::string path, Table Config::*table, Field Table::*field, Range range,
            std::string unit, std::string doc) {
  Key key{std::move(path), Kind::integer, std::move(unit), range, {}, std::move(doc), {}, {}};
  bind<Index>(key, table, field);
  return key;
}

template <class Table>
Key size(std::string path, Table Config::*table, Index Table::*field, Range range,
         std::string doc) {
  Key key{std::move(path), Kind::size, "bytes", range, {}, std::move(doc), {}, {}};
  bind<Index>(key, table, field);
  return key;
}

template <class Table>
Key real(std::string path, Table Config::*table, double Table::*field, Range range,
         std::string unit, std::string doc) {
  Key key{std::move(path), Kind::real, std::move(unit), range, {}, std::move(doc), {}, {}};
  bind<double>(key, table, field);
  return key;
}

template <class Table>
Key duration(std::string path, Table Config::*table, double Table::*field, Range range,
             std::string doc) {
  Key key{std::move(path), Kind::duration, "seconds", range, {}, std::move(doc), {}, {}};
  bind<double>(key, table, field);
  return key;
}

template <class Table>
Key boolean(std::string path, Table Config::*table, bool Table::*field, std::string doc) {
  Key key{std::move(path), Kind::boolean, "", {}, {}, std::move(doc), {}, {}};
  bind<bool>(key, table, field);
  return key;
}

template <class Table>
Key text(std::string path, Table Config::*table, std::string Table::*field, std::string doc) {
  Key key{std::move(path), Kind::text, "", {}, {}, std::move(doc), {}, {}};
  bind<std::string>(key, table, field);
  return key;
}

template <class Table>
Key texts(std::string path, Table Config::*table, std::vector<std::string> Table::*field,
          std::string doc) {
  Key key{std::move(path), Kind::texts, "", {}, {}, std::move(doc), {}, {}};
  bind<std::vector<std::string>>(key, table, field);
  return key;
}

/// The names in `choices` must be literals: keys keep references to them.
template <class Table, class Field, std::size_t count>
Key choice(std::string path, Table Config::*table, Field Table::*field,
           const Choice<Field> (&choices)[count], std::string doc) {
  Key key{std::move(path), Kind::choice, "", {}, {}, std::move(doc), {}, {}};
  const std::vector<Choice<Field>> all(std::begin(choices), std::end(choices));
  for (const Choice<Field>& one : all) key.choices.emplace_back(one.name);
  key.get = [=](const Config& config) -> Value {
    for (const Choice<Field>& one : all) {
      if (one.value == config.*table.*field) return std::string(one.name);
    }
    return std::monostate{};
  };
  key.set = [=](Config& config, const Value& value) {
    for (const Choice<Field>& one : all) {
      if (one.name == std::get<std::string>(value)) config.*table.*field = one.value;
    }
  };
  return key;
}

/// Marks a key whose value changes no bits of the steps after a restart. Such keys control where
/// state is kept, how it is sent, when it is saved, and what only the first step reads.
inline Key same_bits(Key key) {
  key.changes_bits = false;
  return key;
}

inline Range from(double low, double high) { return {low, high, End::included, End::included}; }
inline Range above(double low, double high) { return {low, high, End::excluded, End::included}; }
inline Range below(double low, double high) { return {low, high, End::included, End::excluded}; }

/// The keys of [model], the largest table.
void add_model_keys(std::vector<Key>& table);

/// The keys of [preference].
void add_preference_keys(std::vector<Key>& table);

/// The keys of [distill].
void add_distill_keys(std::vector<Key>& table);

}  // namespace kzero::deck

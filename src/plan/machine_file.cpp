#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "base/printable.hpp"
#include "deck/quantity.hpp"
#include "plan/machine.hpp"

namespace kzero::plan {

namespace {

constexpr Index most_ranks = 1'000'000;  // the limit of grid.data
constexpr Index widest = 1'000'000;

std::optional<double> number_of(const deck::Value& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* number = std::get_if<Index>(&value)) return static_cast<double>(*number);
  return std::nullopt;
}

std::optional<double> above_zero(const deck::Value& value, double most) {
  const auto number = number_of(value);
  return number && *number > 0 && *number <= most ? number : std::nullopt;
}

std::optional<double> bytes_of_text(const deck::Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  const auto bytes = text == nullptr ? std::nullopt : deck::parse_size(*text);
  return bytes && *bytes > 0 ? std::optional(static_cast<double>(*bytes)) : std::nullopt;
}

std::optional<double> count_of(const deck::Value& value) {
  const auto* count = std::get_if<Index>(&value);
  return count != nullptr && *count >= 1 && *count <= most_ranks
             ? std::optional(static_cast<double>(*count))
             : std::nullopt;
}

/// A latency in microseconds, converted to seconds.
std::optional<double> latency_of(const deck::Value& value) {
  constexpr double most = 1e6;
  const auto number = number_of(value);
  return number && *number >= 0 && *number <= most ? std::optional(1e-6 * *number) : std::nullopt;
}

struct Key {
  std::string path;
  std::string allowed;
  std::function<std::optional<double>(const deck::Value&)> parse;
  std::function<void(Machine&, double)> set;
  bool has_default = false;
};

const std::vector<Key>& keys() {
  constexpr double tera = 1e12, most_tflops = 1e6;
  const std::string size = "bytes a second such as \"75GB\"";
  const std::string latency = "microseconds, a number from 0 to 1e6";
  static const std::vector<Key> all{
      {"rank.tflops", "a number above 0, at most 1e6",
       [](const deck::Value& value) { return above_zero(value, most_tflops); },
       [](Machine& m, double value) { m.operations = tera * value; }},
      {"rank.memory_bandwidth", size, bytes_of_text,
       [](Machine& m, double value) { m.memory_bytes = value; }},
      {"node.ranks", "an integer from 1 to 1000000", count_of,
       [](Machine& m, double value) { m.network.node_ranks = static_cast<Index>(value); }},
      {"node.bandwidth", size, bytes_of_text,
       [](Machine& m, double value) { m.network.within_node = value; }},
      {"network.rank_bandwidth", size, bytes_of_text,
       [](Machine& m, double value) { m.network.rank_between = value; }},
      {"network.node_bandwidth", size, bytes_of_text,
       [](Machine& m, double value) { m.network.node_between = value; }},
      {"rank.memory", "bytes such as \"80GB\"", bytes_of_text,
       [](Machine& m, double value) { m.rank_memory = value; }, true},
      {"node.watts", "a number above 0, at most 1e6",
       [](const deck::Value& value) { return above_zero(value, 1e6); },
       [](Machine& m, double value) { m.site.node_watts = value; }, true},
      {"node.hours_between_failures", "a number above 0, at most 1e9",
       [](const deck::Value& value) { return above_zero(value, 1e9); },
       [](Machine& m, double value) { m.site.node_failure_seconds = 3600 * value; }, true},
      {"storage.bandwidth", size, bytes_of_text,
       [](Machine& m, double value) { m.site.storage_bytes = value; }, true},
      {"host.bandwidth", size, bytes_of_text,
       [](Machine& m, double value) { m.host.copied_bytes = value; }, true},
      {"host.memory_bandwidth", size, bytes_of_text,
       [](Machine& m, double value) { m.host.memory_bytes = value; }, true},
      {"host.memory", "bytes such as \"80GB\"", bytes_of_text,
       [](Machine& m, double value) { m.host_memory = value; }, true},
      {"network.rings", "an integer from 1 to 1000000", count_of,
       [](Machine& m, double value) { m.network.rings = static_cast<Index>(value); }, true},
      {"node.latency", latency, latency_of,
       [](Machine& m, double value) { m.network.within_latency = value; }, true},
      {"network.latency", latency, latency_of,
       [](Machine& m, double value) { m.network.between_latency = value; }, true}};
  return all;
}

class Reader {
 public:
  explicit Reader(const deck::Source& source) : source_(source) { machine_.name = source.name; }

  Machine read() {
    const auto sections = deck::read_document(source_, problems_);
    const bool is_toml = problems_.empty();
    for (const deck::Section& section : sections) {
      if (section.number >= 0) {
        problems_.push_back(
            {section.place,
             fmt::format("[{}] is one table, found [[{}]], a list of tables",
                         printable_start(section.name), printable_start(section.name))});
        continue;
      }
      for (const deck::Entry& entry : section.entries) {
        if (section.name == "attained") {
          take_attained(entry);
        } else {
          take(section.name.empty() ? entry.name : section.name + "." + entry.name, entry);
        }
      }
    }
    const bool has_host =
        std::ranges::any_of(found_, [](const std::string& key) { return is_of_host(key); });
    for (const Key& key : keys()) {
      const bool is_needed = !key.has_default || (has_host && is_of_host(key.path));
      if (is_toml && is_needed && !found_.contains(key.path)) {
        problems_.push_back(
            {{.text = source_.name},
             fmt::format("key '{}' is missing; it must be {}", key.path, key.allowed)});
      }
    }
    deck::throw_if_any(std::move(problems_));
    return machine_;
  }

 private:
  /// The keys of [host] are of use only together.
  static bool is_of_host(std::string_view key) { return key.starts_with("host."); }

  void take(const std::string& path, const deck::Entry& entry) {
    const auto key = std::ranges::find(keys(), path, &Key::path);
    if (key == keys().end()) {
      refuse_name(path, entry);
      return;
    }
    found_.insert(path);
    const auto value = key->parse(entry.value);
    if (value) {
      key->set(machine_, *value);
    } else {
      refuse_value(path, key->allowed, entry);
    }
  }

  void take_attained(const deck::Entry& entry) {
    const std::string path = "attained." + entry.name;
    const Index width = deck::parse_count(entry.name).value_or(0);
    const auto share = above_zero(entry.value, 1);
    if (width < 1 || width > widest) {
      problems_.push_back({entry.key_location,
                           fmt::format("a key of [attained] must be a width, an integer from 1 to "
                                       "{}, found '{}'",
                                       widest, printable_start(entry.name))});
    } else if (!share) {
      refuse_value(path, "a number above 0, at most 1", entry);
    } else if (!machine_.attained.emplace(width, *share).second) {
      problems_.push_back({entry.key_location, fmt::format("width {} is given twice", width)});
    }
  }

  void refuse_name(const std::string& path, const deck::Entry& entry) {
    std::vector<std::string> names;
    for (const Key& key : keys()) names.push_back(key.path);
    const std::string near = deck::nearest(path, names, 1 + path.size() / 3);
    problems_.push_back(
        {entry.key_location,
         fmt::format("key '{}' is not known (value {}); {}", printable_start(path), entry.shown,
                     near.empty() ? fmt::format("the keys are {} and widths in [attained]",
                                                fmt::join(names, ", "))
                                  : fmt::format("did you mean '{}'?", near))});
  }

  void refuse_value(const std::string& path, const std::string& allowed, const deck::Entry& entry) {
    problems_.push_back({entry.value_location,
                         fmt::format("key '{}' must be {}, found {}", path, allowed, entry.shown)});
  }

  const deck::Source& source_;
  Machine machine_;
  std::set<std::string> found_;
  std::vector<deck::Problem> problems_;
};

}  // namespace

Machine read_machine(const deck::Source& source) { return Reader(source).read(); }

}  // namespace kzero::plan

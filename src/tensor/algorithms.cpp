#include "tensor/algorithms.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "base/checksum.hpp"
#include "base/printable.hpp"

namespace kzero::tensor {

namespace {

constexpr std::size_t max_name = 200;  // bytes of a product's, device's or library's name
constexpr Index max_calls = 1'000'000'000;
constexpr double max_ms = 1e6;

/// Attributes of cuBLASLt (algorithm_keys).
constexpr std::size_t split_k = 2, reduction = 3;

/// Names go to the terminal, and into a line of the file.
bool is_plain(const std::string& name) {
  const auto fits = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  return !name.empty() && name.size() <= max_name && std::ranges::all_of(name, fits);
}

class TableReader {
 public:
  explicit TableReader(const deck::Source& source) : source_(source) {}

  AlgorithmTable read() {
    const auto sections = deck::read_document(source_, problems_);
    const bool is_toml = problems_.empty();
    for (const deck::Section& section : sections) take(section);
    if (is_toml) {
      if (table_.device.empty()) miss({.text = source_.name}, "device");
      if (table_.library.empty()) miss({.text = source_.name}, "library");
    }
    deck::throw_if_any(std::move(problems_));
    return table_;
  }

 private:
  void take(const deck::Section& section) {
    if (section.name.empty()) {
      for (const deck::Entry& entry : section.entries) take_fact(entry);
    } else if (section.name == "product" && section.number >= 0) {
      take_product(section);
    } else {
      problems_.push_back({section.place, fmt::format("the tables are [[product]], found [{}]",
                                                      printable_start(section.name))});
    }
  }

  void take_fact(const deck::Entry& entry) {
    if (entry.name == "device") return take_name(entry, table_.device);
    if (entry.name == "library") return take_name(entry, table_.library);
    refuse_name(entry, "device, library");
  }

  void take_product(const deck::Section& section) {
    std::string product;
    TableEntry found;
    std::set<std::string> names;
    for (const deck::Entry& entry : section.entries) {
      names.insert(entry.name);
      if (entry.name == "product") {
        take_name(entry, product);
      } else if (entry.name == "calls") {
        take_integer(entry, 1, max_calls, found.calls);
      } else if (entry.name == "heuristic_ms") {
        take_ms(entry, found.heuristic_ms);
      } else if (entry.name == "ms") {
        take_ms(entry, found.ms);
      } else {
        take_attribute(entry, found.algorithm);
      }
    }
    for (const std::string& name : product_keys()) {
      if (!names.contains(name)) miss(section.place, name);
    }
    if (!adds_in_order(found.algorithm)) {
      problems_.push_back({section.place, "split_k above 1 needs reduction = 2"});
    } else if (!product.empty() && !table_.products.emplace(product, found).second) {
      problems_.push_back({section.place, fmt::format("product \"{}\" is given twice", product)});
    }
  }

  void take_attribute(const deck::Entry& entry, Algorithm& algorithm) {
    const auto* key = std::ranges::find(algorithm_keys, entry.name,
                                        [](const AlgorithmKey& k) { return std::string(k.name); });
    if (key == algorithm_keys.end())
      return refuse_name(entry, fmt::format("{}", fmt::join(product_keys(), ", ")));
    const auto at = static_cast<std::size_t>(key - algorithm_keys.begin());
    if (at == reduction && entry.value == deck::Value(Index{1})) {
      refuse_value(entry, "0 or 2: with other schemes, bits are rounded or not repeated");
    } else {
      take_integer(entry, key->low, key->high, algorithm[at]);
    }
  }

  void take_name(const deck::Entry& entry, std::string& to) {
    const auto* text = std::get_if<std::string>(&entry.value);
    if (text != nullptr && is_plain(*text)) {
      to = *text;
    } else {
      refuse_value(entry, fmt::format("1 to {} plain characters (ASCII)", max_name));
    }
  }

  void take_integer(const deck::Entry& entry, Index low, Index high, Index& to) {
    const auto* number = std::get_if<Index>(&entry.value);
    if (number != nullptr && *number >= low && *number <= high) {
      to = *number;
    } else {
      refuse_value(entry, fmt::format("an integer from {} to {}", low, high));
    }
  }

  void take_ms(const deck::Entry& entry, double& to) {
    const auto* number = std::get_if<double>(&entry.value);
    if (number != nullptr && *number > 0 && *number <= max_ms) {
      to = *number;
    } else {
      refuse_value(entry, "milliseconds, a number with a point above 0, at most 1e6");
    }
  }

  static std::vector<std::string> product_keys() {
    std::vector<std::string> names{"product", "calls", "heuristic_ms", "ms"};
    for (const AlgorithmKey& key : algorithm_keys) names.emplace_back(key.name);
    return names;
  }

  void miss(const deck::SourceLocation& place, const std::string& name) {
    problems_.push_back({place, fmt::format("key '{}' is missing", name)});
  }

  void refuse_name(const deck::Entry& entry, const std::string& names) {
    problems_.push_back(
        {entry.key_location, fmt::format("key '{}' is not known; the keys here are {}",
                                         printable_start(entry.name), names)});
  }

  void refuse_value(const deck::Entry& entry, const std::string& allowed) {
    problems_.push_back({entry.value_location, fmt::format("key '{}' must be {}, found {}",
                                                           entry.name, allowed, entry.shown)});
  }

  const deck::Source& source_;
  AlgorithmTable table_;
  std::vector<deck::Problem> problems_;
};

}  // namespace

bool adds_in_order(const Algorithm& algorithm) {
  return algorithm[reduction] == 2 || (algorithm[reduction] == 0 && algorithm[split_k] <= 1);
}

std::uint64_t AlgorithmTable::digest() const {
  std::string all = device + '\n' + library + '\n';
  for (const auto& [product, entry] : products)
    all += fmt::format("{}\n{}\n", product, fmt::join(entry.algorithm, " "));
  return checksum(std::as_bytes(std::span(all)));
}

AlgorithmTable read_algorithms(const deck::Source& source) { return TableReader(source).read(); }

std::string as_toml(const AlgorithmTable& table, const std::string& comment) {
  std::string text = fmt::format("# {}\ndevice = \"{}\"\nlibrary = \"{}\"\n", comment, table.device,
                                 table.library);
  for (const auto& [product, entry] : table.products) {
    text += fmt::format("\n[[product]]\nproduct = \"{}\"\ncalls = {}\n", product, entry.calls);
    text += fmt::format("heuristic_ms = {:.4f}\nms = {:.4f}\n", entry.heuristic_ms, entry.ms);
    for (std::size_t i = 0; i < algorithm_keys.size(); ++i)
      text += fmt::format("{} = {}\n", algorithm_keys[i].name, entry.algorithm[i]);
  }
  return text;
}

}  // namespace kzero::tensor

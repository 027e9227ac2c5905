#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <set>

#include "base/printable.hpp"
#include "deck/quantity.hpp"
#include "plan/machine.hpp"

namespace kzero::plan {

namespace {

constexpr Index max_ranks = 1'000'000;  // the limit of grid.data
constexpr Index widest = 1'000'000;

std::optional<double> number_of(const deck::Value& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* number = std::get_if<Index>(&value)) return static_cast<double>(*number);
  return std::nullopt;
}

std::optional<double> above_zero(const deck::Value& value, double max) {
  const auto number = number_of(value);
  return number && *number > 0 && *number <= max ? number : std::nullopt;
}

std::optional<double> bytes_of_text(const deck::Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  const auto bytes = text == nullptr ? std::nullopt : deck::parse_size(*text);
  return bytes && *bytes > 0 ? std::optional(static_cast<double>(*bytes)) : std::nullopt;
}

std::optional<double> count_of(const deck::Value& value) {
  const auto* count = std::get_if<Index>(&value);
  return count != nullptr && *count >= 1 && *count <= max_ranks
             ? std::optional(static_cast<double>(*count))
             : std::nullopt;
}

/// A latency in microseconds, converted to seconds.
std::optional<double> latency_of(const deck::Value& value) {
  constexpr double max = 1e6;
  const auto number = number_of(value);
  return number && *number >= 0 && *number <= max ? std::optional(1e-6 * *number) : std::nullopt;
}

using Take = std::function<bool(Machine&, const deck::Value&)>;

struct Key {
  std::string path;
  std::string allowed;
  Take take;  // returns whether the value is allowed
  bool has_default = true;
};

/// Takes a value that `parse` turns into a number, which `set` stores.
template <class Parse, class Set>
Take number(const Parse& parse, const Set& set) {
  return [parse, set](Machine& machine, const deck::Value& value) {
    const auto found = parse(value);
    if (found) set(machine, *found);
    return found.has_value();
  };
}

template <class Set>
Take bytes(const Set& set) {
  return number(bytes_of_text, set);
}

template <class Set>
Take below(double max, const Set& set) {
  return number([max](const deck::Value& value) { return above_zero(value, max); }, set);
}

bool take_communicator(Machine& machine, const deck::Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr || (*text != "mpi" && *text != "nccl")) return false;
  machine.communicator =
      *text == "nccl" ? deck::CommunicatorKind::nccl : deck::CommunicatorKind::mpi;
  return true;
}

void skip_spaces(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
}

/// Takes a number, or a text, from the front, and the spaces after it.
template <class Number>
std::optional<Number> take_number(std::string_view& text) {
  Number value = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  skip_spaces(text);
  return value;
}

bool take_text(std::string_view& text, std::string_view wanted) {
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(wanted.size());
  skip_spaces(text);
  return true;
}

/// Reads "8 x 400 Gbit/s": the adapters of a node and the line rate of one. A rank sends through
/// one of them.
bool take_adapters(Machine& machine, const deck::Value& value) {
  constexpr double attained = 0.9;  // of the line rate, as in the files of input/rates/
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return false;
  std::string_view rest = *text;
  const auto count = take_number<int>(rest);
  const bool is_product = take_text(rest, "x");
  const auto gigabits = take_number<double>(rest);
  if (!count || !is_product || !gigabits || !take_text(rest, "Gbit/s") || !rest.empty())
    return false;
  if (*count < 1 || *count > 1000 || !(*gigabits > 0 && *gigabits <= 1e5)) return false;
  Network& network = machine.network;
  network.rank_between = attained * *gigabits * 1e9 / 8;
  network.node_between = *count * network.rank_between;
  network.rings = *count;
  return true;
}

std::vector<Key> rank_keys() {
  constexpr double tera = 1e12, max_tflops = 1e6;
  const std::string positive = "a number above 0, at most 1e6";
  const std::string rate = "bytes a second such as \"75GB\"";
  std::vector<Key> all{
      {"rank.tflops", positive,
       below(max_tflops, [](Machine& m, double value) { m.operations = tera * value; })},
      {"rank.memory_bandwidth", rate,
       bytes([](Machine& m, double value) { m.memory_bytes = value; }), false},
      {"rank.memory", "bytes such as \"80GB\"",
       bytes([](Machine& m, double value) { m.rank_memory = value; })},
      {"rank.half_rows", "a number above 0, at most 1e6",
       below(1e6, [](Machine& m, double value) { m.half_rows = value; })}};
  for (const Dtype precision : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    all.push_back({fmt::format("rank.tflops_{}", name_of(precision)), positive,
                   below(max_tflops, [precision](Machine& m, double value) {
                     m.operations_in[precision] = tera * value;
                   })});
  }
  return all;
}

std::vector<Key> network_keys() {
  const std::string rate = "bytes a second such as \"75GB\"";
  const std::string latency = "microseconds, a number from 0 to 1e6";
  const std::string count = "an integer from 1 to 1000000";
  return {{"node.ranks", count,
           number(count_of, [](Machine& m,
                               double value) { m.network.node_ranks = static_cast<Index>(value); }),
           false},
          {"node.bandwidth", rate,
           bytes([](Machine& m, double value) { m.network.within_node = value; }), false},
          {"node.latency", latency,
           number(latency_of, [](Machine& m, double value) { m.network.within_latency = value; })},
          {"network.adapters", "the adapters of a node such as \"8 x 400 Gbit/s\"", take_adapters},
          {"network.rank_bandwidth", rate,
           bytes([](Machine& m, double value) { m.network.rank_between = value; })},
          {"network.node_bandwidth", rate,
           bytes([](Machine& m, double value) { m.network.node_between = value; })},
          {"network.rings", count,
           number(count_of,
                  [](Machine& m, double value) { m.network.rings = static_cast<Index>(value); })},
          {"network.latency", latency,
           number(latency_of, [](Machine& m, double value) { m.network.between_latency = value; })},
          {"network.communicator", "\"mpi\" or \"nccl\"", take_communicator}};
}

std::vector<Key> site_keys() {
  const std::string rate = "bytes a second such as \"75GB\"";
  return {
      {"node.watts", "a number above 0, at most 1e6",
       below(1e6, [](Machine& m, double value) { m.site.node_watts = value; })},
      {"node.hours_between_failures", "a number above 0, at most 1e9",
       below(1e9, [](Machine& m, double value) { m.site.node_failure_seconds = 3600 * value; })},
      {"storage.bandwidth", rate,
       bytes([](Machine& m, double value) { m.site.storage_bytes = value; })},
      {"host.bandwidth", rate,
       bytes([](Machine& m, double value) { m.host.copied_bytes = value; })},
      {"host.memory_bandwidth", rate,
       bytes([](Machine& m, double value) { m.host.memory_bytes = value; })},
      {"host.memory", "bytes such as \"80GB\"",
       bytes([](Machine& m, double value) { m.host_memory = value; })}};
}

const std::vector<Key>& keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> found = rank_keys();
    for (const auto& part : {network_keys(), site_keys()})
      found.insert(found.end(), part.begin(), part.end());
    return found;
  }();
  return all;
}

class Reader {
 public:
  explicit Reader(const deck::Source& source) : source_(source) {
    machine_.name = source.name;
    constexpr double unknown = std::numeric_limits<double>::infinity();
    machine_.network.rank_between = machine_.network.node_between = unknown;
  }

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
    if (is_toml) require_all();
    deck::throw_if_any(std::move(problems_));
    return machine_;
  }

 private:
  /// The keys of [host] are of use only together.
  static bool is_of_host(std::string_view key) { return key.starts_with("host."); }

  void require_all() {
    const auto found = [&](const std::string& path) { return found_.contains(path); };
    const auto is_of_tflops = [](const std::string& path) {
      return path.starts_with("rank.tflops");
    };
    const bool has_host = std::ranges::any_of(found_, is_of_host);
    const bool has_adapters = found("network.adapters");
    // A file of one node has neither.
    const bool has_bandwidth = found("network.rank_bandwidth") || found("network.node_bandwidth");
    for (const Key& key : keys()) {
      const bool is_other_form =
          key.path == "network.rank_bandwidth" || key.path == "network.node_bandwidth";
      const bool is_needed = !key.has_default || (has_host && is_of_host(key.path)) ||
                             (is_other_form && !has_adapters && has_bandwidth);
      if (is_needed && !found(key.path)) miss(key.path, key.allowed);
      if (has_adapters && found(key.path) && (is_other_form || key.path == "network.rings"))
        problems_.push_back(
            {{.text = source_.name},
             fmt::format("'{}' is given by network.adapters; give one of them", key.path)});
    }
    if (std::ranges::none_of(found_, is_of_tflops))
      miss("rank.tflops", "a number above 0, or one for each precision, such as rank.tflops_bf16");
  }

  void miss(const std::string& path, const std::string& allowed) {
    problems_.push_back(
        {{.text = source_.name}, fmt::format("key '{}' is missing; it must be {}", path, allowed)});
  }

  void take(const std::string& path, const deck::Entry& entry) {
    const auto key = std::ranges::find(keys(), path, &Key::path);
    if (key == keys().end()) {
      refuse_name(path, entry);
      return;
    }
    found_.insert(path);
    if (!key->take(machine_, entry.value)) refuse_value(path, key->allowed, entry);
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

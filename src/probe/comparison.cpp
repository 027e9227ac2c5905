#include "probe/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "base/checksum.hpp"
#include "base/printable.hpp"
#include "grid/agreement.hpp"

namespace kzero::probe {

namespace {

/// There are many libraries and environment variables. The list of facts that all ranks share has
/// one name for each of these two families.
struct Family {
  std::string_view start;  // of the facts' names
  const char* name;
};
constexpr Family families[] = {{"library ", "libraries"}, {"variable ", "variables"}};
constexpr const Family& libraries = families[0];

const Family* family_of(const std::string& name) {
  const auto found = std::ranges::find_if(
      families, [&](const Family& family) { return name.starts_with(family.start); });
  return found == std::end(families) ? nullptr : found;
}

/// Digests of a rank's required facts and of all its facts.
struct Digests {
  std::uint64_t required = 0, all = 0;
  auto operator<=>(const Digests&) const = default;
};

std::uint64_t digest_of(const Facts& facts) {
  const std::string text = encode(facts);
  return checksum(std::as_bytes(std::span(text)));
}

Digests digests_of(const Facts& facts) {
  Facts required;
  std::ranges::copy_if(facts, std::back_inserter(required),
                       [](const Fact& fact) { return fact.weight == Weight::required; });
  return {digest_of(required), digest_of(facts)};
}

std::string text_of(const Digests& digests) {
  return {reinterpret_cast<const char*>(&digests), sizeof digests};
}

Digests digests_in(const std::string& text) {
  Digests digests;
  std::memcpy(&digests, text.data(), sizeof digests);
  return digests;
}

/// Chooses the kinds to ask: first one for each set of required facts, so that every difference
/// that matters is found, then the largest.
std::vector<Kind> chosen(const std::map<Digests, std::vector<int>>& kinds) {
  std::vector<std::tuple<bool, std::size_t, std::vector<int>>> order;
  order.reserve(kinds.size());
  std::set<std::uint64_t> seen;
  for (const auto& [digests, ranks] : kinds)
    order.emplace_back(seen.insert(digests.required).second, ranks.size(), ranks);
  std::ranges::stable_sort(order, [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) > std::tie(std::get<0>(b), std::get<1>(b));
  });
  order.resize(std::min(order.size(), max_kinds));
  std::vector<Kind> found;
  found.reserve(order.size());
  for (const auto& [is_new, size, ranks] : order) found.push_back({ranks, {}});
  return found;
}

std::string value_of(const Facts& facts, const std::string& name) {
  const auto found = std::ranges::find(facts, name, &Fact::name);
  return found == facts.end() ? std::string() : found->value;
}

std::vector<Variant> variants_of(const std::vector<Kind>& kinds, const std::string& name) {
  std::map<std::string, std::vector<int>> ranks;
  for (const Kind& kind : kinds) {
    const std::string value = value_of(kind.facts, name);
    if (value.empty() && family_of(name) == &libraries) continue;
    auto& all = ranks[value];
    all.insert(all.end(), kind.ranks.begin(), kind.ranks.end());
  }
  std::vector<Variant> variants;
  for (auto& [value, all] : ranks) {
    std::ranges::sort(all);
    variants.push_back({value, std::move(all)});
  }
  std::ranges::stable_sort(variants, std::ranges::greater{},
                           [](const Variant& variant) { return variant.ranks.size(); });
  return variants;
}

}  // namespace

bool Comparison::agrees() const {
  return std::ranges::none_of(differences,
                              [](const Difference& d) { return d.weight == Weight::required; });
}

Comparison compare(const std::vector<Kind>& kinds) {
  Comparison found;
  found.kinds = found.compared = static_cast<Index>(kinds.size());
  std::map<std::string, Weight> names;
  for (const Kind& kind : kinds) {
    for (const Fact& fact : kind.facts) names.emplace(fact.name, fact.weight);
  }
  std::map<std::string, bool> agrees;  // by name, or that of its family
  for (const auto& [name, weight] : names) {
    std::vector<Variant> variants = variants_of(kinds, name);
    const Family* family = family_of(name);
    bool& agree = agrees.try_emplace(family != nullptr ? family->name : name, true).first->second;
    if (variants.size() <= 1) continue;
    agree = false;
    found.differences.push_back({name, weight, std::move(variants)});
  }
  for (const auto& [name, agree] : agrees) {
    if (agree) found.same.push_back(name);
  }
  std::ranges::stable_sort(found.differences, {}, &Difference::weight);
  return found;
}

Comparison compare(const grid::Group& world, const Facts& mine) {
  std::map<Digests, std::vector<int>> all;
  int rank = 0;
  for (const std::string& text : world.gather(text_of(digests_of(mine))))
    all[digests_in(text)].push_back(rank++);
  std::vector<Kind> kinds = chosen(all);
  std::string asked;  // a bit for each rank
  if (world.is_root()) asked.assign(static_cast<std::size_t>(world.size()), '0');
  for (const Kind& kind : kinds) asked[kind.ranks.front()] = '1';
  asked = world.broadcast(asked);
  const bool is_asked = asked[world.rank()] == '1';
  const auto answers = world.gather(is_asked ? encode(mine) : std::string());
  if (!world.is_root()) return {};
  for (Kind& kind : kinds) kind.facts = decode(answers[kind.ranks.front()]);
  Comparison found = compare(kinds);
  found.kinds = static_cast<Index>(all.size());
  return found;
}

void require_one_program(const grid::Group& world, const grid::Nodes& nodes) {
  const Comparison comparison = compare(world, program_facts());
  grid::collectively(world, [&] {
    if (comparison.differences.empty()) return;
    std::vector<std::string> lines;
    for (const Difference& difference : comparison.differences)
      lines.push_back(describe(difference, nodes));
    fail(ExitCode::other,
         "the ranks of this launch do not run the same program, and may not understand each "
         "other: {}. Install one program, with the libraries that it was built with, on all nodes",
         fmt::join(lines, ". "));
  });
}

std::string describe(const std::vector<int>& ranks, const grid::Nodes& nodes) {
  std::vector<int> places;
  for (const int rank : ranks) {
    if (places.empty() || places.back() != nodes.of(rank)) places.push_back(nodes.of(rank));
  }
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  const std::string& first = nodes.name(places.front());
  if (places.size() > 2) return fmt::format("{} nodes, first {}", places.size(), first);
  std::size_t all = 0;
  for (const int node : places) all += nodes.ranks(node).size();
  std::string names =
      places.size() == 2 ? fmt::format("{} and {}", first, nodes.name(places.back())) : first;
  if (ranks.size() == all) return names;
  return ranks.size() == 1
             ? fmt::format("rank {} on {}", ranks.front(), names)
             : fmt::format("{} ranks on {}, first {}", ranks.size(), names, ranks.front());
}

std::string describe(const Difference& difference, const grid::Nodes& nodes) {
  constexpr std::size_t max_shown = 4;
  std::vector<std::string> parts;
  for (const Variant& variant : difference.variants) {
    if (parts.size() == max_shown) {
      parts.push_back(fmt::format("{} other values", difference.variants.size() - max_shown));
      break;
    }
    parts.push_back(fmt::format("{} on {}",
                                variant.value.empty() ? "not set" : printable_start(variant.value),
                                describe(variant.ranks, nodes)));
  }
  return fmt::format("{}: {}", difference.name, fmt::join(parts, "; "));
}

}  // namespace kzero::probe

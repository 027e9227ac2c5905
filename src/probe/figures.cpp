#include "probe/figures.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "probe/outliers.hpp"

namespace kzero::probe {

namespace {

struct Quantity {
  const char* what;
  const char* unit;
  double scale;  // of the figure in that unit
  Better better;
  double min_factor;
};

constexpr Quantity products{"products", "Tflop/s", 1e-12, Better::higher, slow_factor};
constexpr Quantity memory{"memory", "GB/s", 1e-9, Better::higher, slow_factor};
constexpr Quantity within_speed{"messages within the node", "GB/s", 1e-9, Better::higher,
                                slow_factor};
constexpr Quantity within_delay{"small messages within the node", "us", 1e6, Better::lower,
                                late_factor};
constexpr Quantity between_speed{"messages to other nodes", "GB/s", 1e-9, Better::higher,
                                 slow_factor};
constexpr Quantity between_delay{"small messages to other nodes", "us", 1e6, Better::lower,
                                 late_factor};

Weakness weakness_of(const Quantity& quantity, const Outlier& odd) {
  return {quantity.what, quantity.unit, odd.figure * quantity.scale, odd.typical * quantity.scale,
          odd.factor};
}

/// Collects the findings of each place.
class Findings {
 public:
  explicit Findings(const grid::Nodes& nodes) : nodes_(nodes) {}

  /// Compares ranks. The ranks of a node count as one place, which has the figure of its slowest
  /// rank. On a single node each rank is a place.
  void compare_ranks(const Quantity& quantity, const std::vector<double>& figures) {
    std::map<int, Outlier> worst;  // by place
    for (const Outlier& odd : outliers(figures, quantity.better, quantity.min_factor)) {
      const int place = place_of(static_cast<int>(odd.place));
      const auto [entry, is_new] = worst.try_emplace(place, odd);
      if (!is_new && odd.factor > entry->second.factor) entry->second = odd;
    }
    for (const auto& [place, odd] : worst) {
      const int rank = static_cast<int>(odd.place);
      Finding& finding = places_[place];
      finding.nodes = {nodes_.of(rank)};
      if (finding.rank < 0) finding.rank = rank;
      finding.weaknesses.push_back(weakness_of(quantity, odd));
    }
  }

  void compare_nodes(const Quantity& quantity, const std::vector<double>& figures) {
    for (const Outlier& odd : outliers(figures, quantity.better, quantity.min_factor))
      add(static_cast<int>(odd.place), weakness_of(quantity, odd));
  }

  void add(int node, Weakness weakness) {
    places_[node].nodes = {node};
    places_[node].weaknesses.push_back(std::move(weakness));
  }

  std::vector<Finding> found() const {
    std::vector<Finding> all;
    for (const auto& [place, finding] : places_) all.push_back(finding);
    return all;
  }

  bool has(int node) const { return nodes_.count() > 1 && places_.contains(node); }

 private:
  int place_of(int rank) const { return nodes_.count() == 1 ? rank : nodes_.of(rank); }

  const grid::Nodes& nodes_;
  std::map<int, Finding> places_;
};

/// One figure of each rank, node or link.
template <class All, class Get>
std::vector<double> column(const All& all, const Get& get) {
  std::vector<double> figures;
  figures.reserve(all.size());
  for (const auto& each : all) figures.push_back(get(each));
  return figures;
}

double speed_of(const MeasuredLink& measured) { return measured.link.bytes_per_second; }
double delay_of(const MeasuredLink& measured) { return measured.link.latency_seconds; }

}  // namespace

void summarize(Figures& figures, const grid::Nodes& nodes, const std::vector<WallClock>& clocks) {
  const double typical = median_of(column(clocks, [](const WallClock& c) { return c.ahead; }));
  for (int node = 0; node < nodes.count(); ++node) {
    NodeFigures& row = figures.nodes.emplace_back();
    const std::vector<int>& ranks = nodes.ranks(node);
    const auto slowest = [&](double Speed::*figure) {
      double smallest = std::numeric_limits<double>::infinity();
      for (const int rank : ranks) smallest = std::min(smallest, figures.ranks[rank].*figure);
      return smallest;
    };
    row.slowest = {slowest(&Speed::operations), slowest(&Speed::memory_bytes)};
    std::vector<MeasuredLink> inside;
    std::ranges::copy_if(figures.within, std::back_inserter(inside),
                         [&](const MeasuredLink& l) { return nodes.of(l.one) == node; });
    row.within = {median_of(column(inside, delay_of)), median_of(column(inside, speed_of))};
    row.between = best_of(figures.between, node);
    const WallClock& clock = clocks[node];
    row.clock = {clock.ahead - typical, clock.accuracy};
  }
}

std::vector<Finding> find_odd(const Figures& figures, const grid::Nodes& nodes) {
  Findings found(nodes);
  const auto of_ranks = [&](double Speed::*figure) {
    return column(figures.ranks, [&](const Speed& speed) { return speed.*figure; });
  };
  found.compare_ranks(products, of_ranks(&Speed::operations));
  found.compare_ranks(memory, of_ranks(&Speed::memory_bytes));
  if (nodes.count() == 1) return found.found();
  const auto of_nodes = [&](Link NodeFigures::*link, double Link::*figure) {
    return column(figures.nodes, [&](const NodeFigures& node) { return node.*link.*figure; });
  };
  found.compare_nodes(within_speed, of_nodes(&NodeFigures::within, &Link::bytes_per_second));
  found.compare_nodes(within_delay, of_nodes(&NodeFigures::within, &Link::latency_seconds));
  found.compare_nodes(between_speed, of_nodes(&NodeFigures::between, &Link::bytes_per_second));
  found.compare_nodes(between_delay, of_nodes(&NodeFigures::between, &Link::latency_seconds));
  for (int node = 0; node < nodes.count(); ++node) {
    const WallClock& clock = figures.nodes[node].clock;
    if (std::abs(clock.ahead) > largest_clock_difference + clock.accuracy)
      found.add(node, {"clock", "s", clock.ahead, 0, 0});
  }
  std::vector<Finding> all = found.found();
  for (const Outlier& odd :
       outliers(column(figures.between, speed_of), Better::higher, slow_factor)) {
    const MeasuredLink& link = figures.between[odd.place];
    if (!found.has(link.one) && !found.has(link.other))
      all.push_back({{link.one, link.other}, -1, {weakness_of(between_speed, odd)}});
  }
  return all;
}

std::string describe_place(const Finding& finding, const grid::Nodes& nodes) {
  const std::string& first = nodes.name(finding.nodes.front());
  if (finding.nodes.size() > 1)
    return fmt::format("the link of {} and {}", first, nodes.name(finding.nodes.back()));
  if (nodes.count() == 1) return fmt::format("rank {} on {}", finding.rank, first);
  return first;
}

std::string describe_reasons(const Finding& finding) {
  std::vector<std::string> reasons;
  for (const Weakness& weak : finding.weaknesses) {
    if (weak.factor == 0) {
      reasons.push_back(fmt::format("its {} is {:.3g} {} {} the others'", weak.what,
                                    std::abs(weak.figure), weak.unit,
                                    weak.figure > 0 ? "ahead of" : "behind"));
    } else {
      reasons.push_back(fmt::format("{} {:.3g} times slower ({:.3g} {}, typical {:.3g})", weak.what,
                                    weak.factor, weak.figure, weak.unit, weak.typical));
    }
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

}  // namespace kzero::probe

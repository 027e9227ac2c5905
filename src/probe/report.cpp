#include "probe/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "probe/outliers.hpp"

namespace kzero::probe {

namespace {

/// A column of the table of nodes.
struct Column {
  const char* group;
  const char* unit;
  double scale;  // of the figure in that unit
  Better better;
  std::function<double(const NodeFigures&)> figure;
};

std::vector<Column> columns() {
  using Row = const NodeFigures&;
  return {
      {"products", "Tflop/s", 1e-12, Better::higher,
       [](Row row) { return row.slowest.operations; }},
      {"memory", "GB/s", 1e-9, Better::higher, [](Row row) { return row.slowest.memory_bytes; }},
      {"within", "us", 1e6, Better::lower, [](Row row) { return row.within.latency_seconds; }},
      {"the node", "GB/s", 1e-9, Better::higher,
       [](Row row) { return row.within.bytes_per_second; }},
      {"to other", "us", 1e6, Better::lower, [](Row row) { return row.between.latency_seconds; }},
      {"nodes", "GB/s", 1e-9, Better::higher, [](Row row) { return row.between.bytes_per_second; }},
      {"clock", "s", 1, Better::lower,
       [](Row row) { return std::round(1e3 * row.clock.ahead) / 1e3 + 0.0; }}};  // no -0
}

std::string shown(double value) {
  if (!std::isfinite(value)) return "-";
  return fmt::format("{:.3g}", value);
}

std::string line(const std::string& name, const std::string& ranks,
                 const std::vector<std::string>& cells) {
  std::string text = fmt::format("{:<20} {:>6}", name, ranks);
  for (const std::string& cell : cells) text += fmt::format("{:>10}", cell);
  return text + '\n';
}

/// A line with one figure per column, such as the median over nodes.
template <class Choose>
std::string line_of(const std::string& name, const Figures& figures, const Choose& choose) {
  std::vector<std::string> cells;
  for (const Column& column : columns()) {
    std::vector<double> all;
    for (const NodeFigures& node : figures.nodes) all.push_back(column.figure(node));
    std::erase_if(all, [](double figure) { return !std::isfinite(figure); });
    cells.push_back(all.empty() ? "-" : shown(choose(all, column.better) * column.scale));
  }
  return line(name, "", cells);
}

std::string heading() {
  std::vector<std::string> groups, units;
  for (const Column& column : columns()) {
    groups.emplace_back(column.group);
    units.emplace_back(column.unit);
  }
  return line("", "", groups) + line("node", "ranks", units);
}

std::string table(const Survey& survey, const grid::Nodes& nodes, int rows) {
  const Figures& figures = survey.figures;
  std::set<int> odd;
  for (const Finding& finding : survey.findings)
    odd.insert(finding.nodes.begin(), finding.nodes.end());
  const bool shows_all = nodes.count() <= rows;
  std::string text = heading();
  for (int node = 0; node < nodes.count(); ++node) {
    if (!shows_all && !odd.contains(node)) continue;
    const NodeFigures& row = figures.nodes[node];
    std::vector<std::string> cells;
    for (const Column& column : columns())
      cells.push_back(shown(column.figure(row) * column.scale));
    text += line(nodes.name(node), fmt::to_string(nodes.ranks(node).size()), cells);
  }
  const auto best = [](const std::vector<double>& all, Better better) {
    return better == Better::higher ? std::ranges::max(all) : std::ranges::min(all);
  };
  const auto worst = [](const std::vector<double>& all, Better better) {
    return better == Better::higher ? std::ranges::min(all) : std::ranges::max(all);
  };
  if (nodes.count() > 1)
    text += line_of("median", figures,
                    [](const std::vector<double>& all, Better) { return median_of(all); });
  if (!shows_all) text += line_of("best", figures, best) + line_of("worst", figures, worst);
  return text;
}

/// The places of all findings, a few by name.
std::string places(const Survey& survey, const grid::Nodes& nodes) {
  constexpr std::size_t max_named = 4;
  std::vector<std::string> names;
  for (const Finding& finding : survey.findings) {
    if (names.size() == max_named) {
      names.push_back(fmt::format("{} more", survey.findings.size() - max_named));
      break;
    }
    names.push_back(describe_place(finding, nodes));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string count_of(Index count, const char* thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

}  // namespace

std::string verdict(const Survey& survey, const grid::Nodes& nodes) {
  if (!survey.comparison.agrees())
    return fmt::format("not one run: the ranks differ in {}",
                       survey.comparison.differences.front().name);
  if (survey.ranks == 1) return "good: there is one rank, so there is nothing to compare";
  if (!survey.findings.empty())
    return fmt::format("can run, but look at {} first", places(survey, nodes));
  if (!survey.comparison.differences.empty())
    return fmt::format("can run, but the ranks differ in {}",
                       survey.comparison.differences.front().name);
  return fmt::format("good: {} on {} agree, and none is odd", count_of(survey.ranks, "rank"),
                     count_of(nodes.count(), "node"));
}

std::string text(const Survey& survey, const grid::Nodes& nodes, int rows) {
  std::string text = fmt::format("launch      {} on {}, {} a rank; measured in {:.1f} s\n",
                                 count_of(survey.ranks, "rank"), count_of(nodes.count(), "node"),
                                 count_of(survey.threads, "thread"), survey.seconds);
  if (survey.ranks > 1)
    text += fmt::format("same        {}\n", fmt::join(survey.comparison.same, ", "));
  for (const Difference& difference : survey.comparison.differences)
    text += fmt::format("{:<12}{}\n", difference.weight == Weight::required ? "error" : "differs",
                        describe(difference, nodes));
  if (survey.comparison.kinds > survey.comparison.compared)
    text += fmt::format("note        ranks are of {} kinds; {} of them were compared in full\n",
                        survey.comparison.kinds, survey.comparison.compared);
  text += '\n' + table(survey, nodes, rows) + '\n';
  for (const Finding& finding : survey.findings)
    text += fmt::format("odd         {}: {}\n", describe_place(finding, nodes),
                        describe_reasons(finding));
  return text + fmt::format("verdict     {}\n", verdict(survey, nodes));
}

}  // namespace kzero::probe

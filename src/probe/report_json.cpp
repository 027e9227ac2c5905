#include <cmath>
#include <nlohmann/json.hpp>

#include "probe/report.hpp"

namespace kzero::probe {

namespace {

using nlohmann::json;

json link_of(const Link& link) {
  if (!std::isfinite(link.bytes_per_second)) return nullptr;
  return {{"latency_seconds", link.latency_seconds}, {"bytes_per_second", link.bytes_per_second}};
}

json differences_of(const Comparison& comparison, const grid::Nodes& nodes) {
  json differences = json::array();
  for (const Difference& difference : comparison.differences) {
    json variants = json::array();
    for (const Variant& variant : difference.variants)
      variants.push_back({{"value", variant.value},
                          {"ranks", variant.ranks.size()},
                          {"where", describe(variant.ranks, nodes)}});
    differences.push_back({{"fact", difference.name},
                           {"required", difference.weight == Weight::required},
                           {"variants", std::move(variants)}});
  }
  return differences;
}

json nodes_of(const Survey& survey, const grid::Nodes& nodes) {
  json rows = json::array();
  for (int node = 0; node < nodes.count(); ++node) {
    const NodeFigures& row = survey.figures.nodes[node];
    rows.push_back({{"node", nodes.name(node)},
                    {"ranks", nodes.ranks(node)},
                    {"operations_per_second", row.slowest.operations},
                    {"memory_bytes_per_second", row.slowest.memory_bytes},
                    {"within", link_of(row.within)},
                    {"between", link_of(row.between)},
                    {"clock_ahead_seconds", row.clock.ahead},
                    {"clock_accuracy_seconds", row.clock.accuracy}});
  }
  return rows;
}

json findings_of(const Survey& survey, const grid::Nodes& nodes) {
  json rows = json::array();
  for (const Finding& finding : survey.findings) {
    json names = json::array(), reasons = json::array();
    for (const int node : finding.nodes) names.push_back(nodes.name(node));
    for (const Weakness& weak : finding.weaknesses)
      reasons.push_back({{"what", weak.what},
                         {"unit", weak.unit},
                         {"figure", weak.figure},
                         {"typical", weak.typical},
                         {"factor", weak.factor == 0 ? json(nullptr) : json(weak.factor)}});
    rows.push_back({{"nodes", std::move(names)},
                    {"rank", finding.rank < 0 ? json(nullptr) : json(finding.rank)},
                    {"weaknesses", std::move(reasons)}});
  }
  return rows;
}

}  // namespace

std::string json_text(const Survey& survey, const grid::Nodes& nodes) {
  json links = json::array();
  for (const MeasuredLink& measured : survey.figures.between) {
    json row = link_of(measured.link);
    row["nodes"] = {nodes.name(measured.one), nodes.name(measured.other)};
    links.push_back(std::move(row));
  }
  const json all{{"ranks", survey.ranks},
                 {"threads", survey.threads},
                 {"seconds", survey.seconds},
                 {"agrees", survey.comparison.agrees()},
                 {"same", survey.comparison.same},
                 {"differences", differences_of(survey.comparison, nodes)},
                 {"nodes", nodes_of(survey, nodes)},
                 {"links", std::move(links)},
                 {"odd", findings_of(survey, nodes)},
                 {"verdict", verdict(survey, nodes)}};
  return all.dump(1, ' ', false, json::error_handler_t::replace) + '\n';
}

}  // namespace kzero::probe

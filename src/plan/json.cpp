#include "metrics/traffic_json.hpp"
#include "plan/report.hpp"

namespace kzero::plan {

namespace {

using Json = nlohmann::ordered_json;

Json as_json(const Holding& holding) {
  Json memory = Json::object();
  for (const auto& category : holding.memory) memory[category.name] = category.planned_bytes;
  return {{"ranks", holding.ranks()},
          {"grid", {{"data", holding.data_ranks}, {"tensor", holding.tensor_ranks}}},
          {"stage", holding.stage},
          {"parameters", holding.parameters},
          {"memory", std::move(memory)},
          {"total_bytes", holding.total_bytes()}};
}

Json as_json(const Entry& entry) {
  Json json = as_json(static_cast<const Holding&>(entry));
  json["traffic"] = Json::array();
  for (const metrics::TrafficRow& row : entry.traffic)
    json["traffic"].push_back(metrics::as_json(row));
  json["step_seconds_estimate"] = entry.estimate ? Json(entry.estimate->seconds()) : Json();
  constexpr double tera = 1e12;
  json["tflops_per_rank"] = entry.estimate ? Json(entry.operations_per_second() / tera) : Json();
  json["model_tflops_per_rank"] =
      entry.estimate ? Json(entry.model_operations_per_second() / tera) : Json();
  json["threads"] = entry.threads;
  json["precision"] = std::string(name_of(entry.precision));
  json["micro_batch"] = entry.micro_batch;
  json["layers"] = entry.layers;
  json["trained_parameters"] = entry.trained_parameters;
  json["frozen_bytes"] = entry.frozen_bytes;
  json["copied_parameters"] = entry.copied_parameters;
  json["recompute"] = std::string(name_of(entry.recompute.mode));
  json["partition"] = entry.recompute.partition;
  return json;
}

template <class Plan>
Json list(const std::vector<Plan>& plans) {
  Json all = Json::array();
  for (const Plan& plan : plans) all.push_back(as_json(plan));
  return all;
}

constexpr int indent = 2;

}  // namespace

std::string json(const std::vector<Entry>& entries) { return list(entries).dump(indent) + '\n'; }

std::string json(const std::vector<Holding>& holdings) {
  return list(holdings).dump(indent) + '\n';
}

std::string json(const std::vector<Fit>& fits) {
  Json all = Json::array();
  for (const Fit& fit : fits) {
    for (const Answer& answer : fit.answers) {
      Json& json = all.emplace_back(as_json(answer.entry));
      json["settings"] = Json::object();
      for (const auto& [key, setting] : answer.settings())
        std::visit([&, &at = key](const auto& value) { json["settings"][at] = value; }, setting);
    }
  }
  return all.dump(indent) + '\n';
}

}  // namespace kzero::plan

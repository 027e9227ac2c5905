#include "metrics/traffic_json.hpp"
#include "plan/report.hpp"

namespace kzero::plan {

namespace {

using Json = nlohmann::ordered_json;

/// A count as an integer, where a double is exact.
Json count(double value) { return value < 0x1p53 ? Json(static_cast<Index>(value)) : Json(value); }

Json as_json(const Footprint& footprint) {
  Json memory = Json::object();
  for (const auto& category : footprint.memory) memory[category.name] = category.planned_bytes;
  Json grid{{"data", footprint.data_ranks}, {"tensor", footprint.tensor_ranks}};
  if (footprint.sequence_ranks > 1) grid["sequence"] = footprint.sequence_ranks;
  return {{"ranks", footprint.ranks()},  {"grid", std::move(grid)},
          {"stage", footprint.stage},    {"parameters", footprint.parameters},
          {"memory", std::move(memory)}, {"total_bytes", footprint.total_bytes()}};
}

Json as_json(const Campaign& campaign) {
  Json json{{"tokens", campaign.tokens},
            {"steps", campaign.steps},
            {"seconds", campaign.seconds},
            {"nodes", campaign.nodes},
            {"node_hours", campaign.node_hours()}};
  if (campaign.joules) json["joules"] = *campaign.joules;
  if (const auto& found = campaign.interruptions) {
    json["failures"] = campaign.failures();
    json["checkpoint_seconds"] = found->checkpoint;
    json["checkpoint_interval_seconds"] = found->interval;
    json["lost_share"] = found->lost;
  }
  return json;
}

Json as_json(const std::vector<PlannedPhase>& phases) {
  Json all = Json::array();
  for (const PlannedPhase& phase : phases) {
    all.push_back({{"first_step", phase.first_step},
                   {"steps", phase.steps},
                   {"sequences", phase.sequences},
                   {"micro_batches", phase.micro_batches},
                   {"rounds", phase.rounds},
                   {"total_bytes", phase.total_bytes},
                   {"sent_bytes", phase.sent_bytes}});
  }
  return all;
}

Json as_json(const Entry& entry) {
  if (!entry.refusal.empty()) return {{"ranks", entry.ranks()}, {"refused", entry.refusal}};
  Json json = as_json(static_cast<const Footprint&>(entry));
  json["nccl_bytes_estimate"] = entry.nccl_bytes;
  json["traffic"] = Json::array();
  for (const metrics::TrafficRow& row : entry.traffic)
    json["traffic"].push_back(metrics::as_json(row));
  json["step_seconds_estimate"] = entry.estimate ? Json(entry.estimate->seconds()) : Json();
  constexpr double tera = 1e12;
  json["tflops_per_rank"] = entry.estimate ? Json(entry.operations_per_second() / tera) : Json();
  json["model_tflops_per_rank"] =
      entry.estimate ? Json(entry.model_operations_per_second() / tera) : Json();
  json["waits"] = Json::object();
  for (const Cause cause : all_causes)
    if (entry.estimate) json["waits"][name_of(cause)] = entry.estimate->waits[cause];
  json["tokens_per_second"] = entry.estimate ? Json(entry.tokens_per_second()) : Json();
  json["tokens_per_second_and_rank"] =
      entry.estimate ? Json(entry.tokens_per_second_and_rank()) : Json();
  if (!entry.keeps_sums.empty()) json["gradients"] = entry.keeps_sums;
  if (entry.teacher_bytes > 0) {
    json["teacher_bytes_per_token"] = entry.teacher_bytes;
    json["teacher_bytes"] = count(entry.teacher_file_bytes());
  }
  json["notes"] = entry.notes;
  if (!entry.shortage.empty()) json["too_large"] = entry.shortage;
  if (entry.campaign) json["campaign"] = as_json(*entry.campaign);
  json["run_tokens"] = count(entry.run_tokens);
  if (!entry.phases.empty()) json["phases"] = as_json(entry.phases);
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

Json with_settings(const Entry& entry, const Settings& settings) {
  Json json = as_json(entry);
  json["settings"] = Json::object();
  for (const auto& [key, setting] : settings)
    std::visit([&, &at = key](const auto& value) { json["settings"][at] = value; }, setting);
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

std::string json(const std::vector<Footprint>& footprints) {
  return list(footprints).dump(indent) + '\n';
}

std::string json(const std::vector<Fit>& fits) {
  Json all = Json::array();
  for (const Fit& fit : fits) {
    for (const Answer& answer : fit.answers)
      all.push_back(with_settings(answer.entry, answer.settings()));
  }
  return all.dump(indent) + '\n';
}

std::string json(const std::vector<Proposal>& proposals) {
  Json all = Json::array();
  for (const Proposal& proposal : proposals)
    all.push_back(with_settings(proposal.entry, proposal.settings));
  return all.dump(indent) + '\n';
}

}  // namespace kzero::plan

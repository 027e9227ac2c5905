#include "metrics/jsonl_sink.hpp"

#include <chrono>
#include <cmath>

#include "metrics/traffic_json.hpp"

namespace kzero::metrics {

namespace {

using Json = nlohmann::ordered_json;

/// Seconds since 1970, in whole milliseconds.
double time_now() {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return std::round(1e3 * now.count()) / 1e3;
}

// Host names and paths may contain any bytes. Bytes that are not UTF-8 must not stop a run.
std::string dump(Json json) {
  json["time"] = time_now();
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json memory_json(const std::vector<CategoryBytes>& categories) {
  Json result = Json::object();
  for (const CategoryBytes& category : categories) {
    result[category.name] = {{"planned_bytes", category.planned_bytes},
                             {"peak_bytes", category.peak_bytes}};
  }
  return result;
}

/// Packing, blends and evaluations appear only if the deck has them.
Json data_json(const DataSummary& data) {
  Json json = {{"files", data.files},
               {"tokens", data.tokens},
               {"sequences", data.sequences},
               {"epochs", data.epochs},
               {"validation_sequences", data.validation_sequences}};
  if (const auto& packing = data.packing) {
    json["packing"] = {{"documents", packing->documents},
                       {"positions", packing->positions},
                       {"tokens", packing->tokens},
                       {"targets", packing->targets}};
    if (packing->has_weights()) {
      json["packing"]["least_weight"] = packing->least_weight;
      json["packing"]["largest_weight"] = packing->largest_weight;
    }
  }
  for (const SourceSummary& source : data.sources) {
    json["sources"].push_back({{"name", source.name},
                               {"share", source.share},
                               {"files", source.files},
                               {"tokens", source.tokens},
                               {"sequences", source.sequences},
                               {"epochs", source.epochs}});
  }
  for (const EvaluationSummary& evaluation : data.evaluations) {
    json["evaluations"].push_back({{"name", evaluation.name},
                                   {"files", evaluation.files},
                                   {"tokens", evaluation.tokens},
                                   {"sequences", evaluation.sequences}});
  }
  return json;
}

Json spread_json(const Spread& spread) {
  return {{"min", spread.min}, {"mean", spread.mean}, {"max", spread.max}};
}

Json energy_json(const EnergyRecord& energy) {
  Json json = {{"joules", energy.joules},
               {"watts", energy.watts},
               {"sources", energy.sources},
               {"nodes", energy.nodes},
               {"measured_nodes", energy.measured_nodes},
               {"devices", energy.devices},
               {"measured_devices", energy.measured_devices}};
  if (energy.joules_per_token) json["joules_per_token"] = *energy.joules_per_token;
  return json;
}

Json limit_json(const std::optional<TimeLimit>& limit) {
  if (!limit) return nullptr;
  return {{"source", limit->source},
          {"seconds_left", limit->seconds_left},
          {"stop_margin", limit->stop_margin}};
}

Json planned_json(const StartRecord& record) {
  Json memory = Json::object();
  for (const CategoryBytes& category : record.planned_memory) {
    memory[category.name] = category.planned_bytes;
  }
  Json traffic = Json::array();
  for (const TrafficRow& row : record.planned_traffic) {
    traffic.push_back({{"group", row.group},
                       {"operation", row.operation},
                       {"purpose", row.purpose},
                       {"expected_elements_per_step", row.expected_elements_per_step}});
  }
  return {{"memory", std::move(memory)}, {"traffic", std::move(traffic)}};
}

/// Each with its first step and the tokens of its steps; empty if all steps have the same.
Json phases_json(const std::vector<StepTokens>& phases) {
  Json all = Json::array();
  for (const StepTokens& phase : phases)
    all.push_back({{"first_step", phase.first_step}, {"tokens_per_step", phase.tokens}});
  return all;
}

Json peak_json(const Peak& peak) {
  return {{"flops_per_second", peak.flops_per_second},
          {"source", peak.measured_width > 0 ? "measured" : "run.peak_tflops"},
          {"disturbed", peak.is_disturbed}};
}

}  // namespace

void JsonlSink::write(const StartRecord& record) {
  if (record.first_step == 0)
    file_.start_afresh();
  else
    file_.go_on();
  Json grid{{"data", record.data_ranks}, {"tensor", record.tensor_ranks}};
  if (record.sequence_ranks > 1) grid["sequence"] = record.sequence_ranks;
  Json versions = Json::object();
  for (const auto& [name, version] : record.versions) versions[name] = version;
  file_.write_line(dump({{"event", "start"},
                         {"versions", std::move(versions)},
                         {"git_hash", record.git_hash},
                         {"hosts", record.hosts},
                         {"deck_file", record.deck_file},
                         {"deck", record.deck},
                         {"grid", std::move(grid)},
                         {"threads", record.threads},
                         {"stage", record.stage},
                         {"precision", record.precision},
                         {"parameters", record.parameters},
                         {"steps", record.steps},
                         {"first_step", record.first_step},
                         {"load_seconds", record.load_seconds},
                         {"process_seconds", record.process_seconds},
                         {"tokens_per_step", record.tokens_per_step},
                         {"phases", phases_json(record.phases)},
                         {"peak", peak_json(record.peak)},
                         {"data", data_json(record.data)},
                         {"bits_depend_on", record.bits_depend_on},
                         {"bits", record.bits},
                         {"state", record.state.empty() ? Json() : Json(record.state)},
                         {"limit", limit_json(record.limit)},
                         {"plan", planned_json(record)}}));
}

void JsonlSink::write(const StepRecord& record) {
  Json json = {{"event", "step"},           {"step", record.step},
               {"loss", record.loss},       {"grad_norm", record.grad_norm},
               {"lr", record.lr},           {"tokens", record.tokens},
               {"seconds", record.seconds}, {"tokens_per_second", record.tokens_per_second},
               {"mfu", record.mfu},         {"loss_scale", record.loss_scale},
               {"skipped", record.skipped}};
  if (record.targets) json["targets"] = *record.targets;
  if (record.norm_limit) json["norm_limit"] = *record.norm_limit;
  if (!record.experts.largest.empty()) {
    json["expert_load"] = record.experts.largest;
    json["expert_entropy"] = record.experts.entropy;
  }
  if (const auto& pairs = record.preference) {
    json["pairs"] = pairs->pairs;
    json["chosen_reward"] = pairs->chosen_reward;
    json["rejected_reward"] = pairs->rejected_reward;
    json["accuracy"] = pairs->accuracy;
  }
  if (const auto& distill = record.distill) {
    json["cross_entropy"] = distill->cross_entropy;
    json["kl"] = distill->kl;
  }
  file_.write_line(dump(std::move(json)));
}

void JsonlSink::write(const ValidationRecord& record) {
  file_.write_line(dump({{"event", "validation"},
                         {"step", record.step},
                         {"loss", record.loss},
                         {"tokens", record.tokens},
                         {"seconds", record.seconds}}));
}

void JsonlSink::write(const EvaluationRecord& record) {
  file_.write_line(dump({{"event", "evaluation"},
                         {"name", record.name},
                         {"step", record.step},
                         {"loss", record.loss},
                         {"tokens", record.tokens},
                         {"seconds", record.seconds}}));
}

void JsonlSink::write(const CheckpointRecord& record) {
  file_.write_line(dump({{"event", "checkpoint"},
                         {"step", record.step},
                         {"folder", record.folder},
                         {"bytes", record.bytes},
                         {"seconds", record.seconds},
                         {"stall_seconds", record.stall_seconds},
                         {"state", record.state}}));
}

void JsonlSink::write(const NodesRecord& record) {
  Json rows = Json::array();
  for (const NodeRow& row : record.rows) {
    rows.push_back({{"host", row.host},
                    {"first_rank", row.first_rank},
                    {"ranks", row.ranks},
                    {"compute_seconds", row.compute_seconds},
                    {"wait_seconds", row.wait_seconds},
                    {"no_core_seconds", row.no_core_seconds},
                    {"busiest_rank", row.busiest_rank},
                    {"busiest_seconds", row.busiest_seconds},
                    {"slow", row.slow}});
  }
  Json json = {{"event", "nodes"},
               {"step", record.step},
               {"steps", record.steps},
               {"seconds", record.seconds},
               {"by", record.by_rank ? "rank" : "node"},
               {"count", record.count},
               {"compute_seconds", spread_json(record.compute)},
               {"wait_seconds", spread_json(record.wait)},
               {"nodes", std::move(rows)}};
  if (record.joules) json["joules"] = *record.joules;
  file_.write_line(dump(std::move(json)));
}

void JsonlSink::write(const EndRecord& record) {
  Json memory = Json::array();
  for (const MemoryRow& row : record.memory) {
    memory.push_back({{"rank", row.rank},
                      {"resident_peak_bytes", row.resident_peak_bytes},
                      {"resident_start_bytes", row.resident_start_bytes},
                      {"unplanned_peak_bytes", unplanned_bytes(row)},
                      {"categories", memory_json(row.categories)}});
  }
  Json traffic = Json::array();
  for (const TrafficRow& row : record.traffic) {
    traffic.push_back(as_json(row));
  }
  Json json = {{"event", "end"},
               {"reason", record.reason},
               {"signal", record.signal},
               {"exit_code", record.exit_code},
               {"steps", record.steps},
               {"seconds", record.seconds},
               {"memory", std::move(memory)},
               {"traffic", std::move(traffic)}};
  if (record.spikes) json["spikes"] = *record.spikes;
  if (record.energy) json["energy"] = energy_json(*record.energy);
  file_.write_line(dump(std::move(json)));
}

}  // namespace kzero::metrics

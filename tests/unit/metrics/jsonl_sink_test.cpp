#include "metrics/jsonl_sink.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.hpp"
#include "support/temporary_folder.hpp"

namespace kzero::metrics {
namespace {

using Json = nlohmann::ordered_json;

class JsonLines : public testing::Test {
 protected:
  std::vector<std::string> lines() const {
    std::ifstream file(path_);
    std::vector<std::string> result;
    for (std::string line; std::getline(file, line);) result.push_back(line);
    return result;
  }

  /// The line without its timestamp.
  static std::string timeless(const std::string& line) {
    Json json = Json::parse(line);
    json.erase("time");
    return json.dump();
  }

  static std::vector<std::string> keys(const Json& json) {
    std::vector<std::string> result;
    for (const auto& [key, value] : json.items()) result.push_back(key);
    return result;
  }

  tests::TemporaryFolder folder_;
  std::string path_ = folder_.path() / "runs" / "new" / "metrics.jsonl";
};

TEST_F(JsonLines, AStepHasTheAgreedFieldsAndReadsBackExactly) {
  const StepRecord record{.step = 7,
                          .loss = 0.1 + 0.2,
                          .grad_norm = 1.0 / 3,
                          .lr = 2.9999999999999997e-4,
                          .tokens = 2048,
                          .seconds = 1e-17,
                          .tokens_per_second = 123456789.123456789,
                          .mfu = 5e-324,
                          .loss_scale = 65536,
                          .skipped = false};
  JsonlSink(path_).write(record);
  const Json json = Json::parse(lines().at(0));
  EXPECT_EQ(keys(json), (std::vector<std::string>{"event", "step", "loss", "grad_norm", "lr",
                                                  "tokens", "seconds", "tokens_per_second", "mfu",
                                                  "loss_scale", "skipped", "time"}));
  EXPECT_EQ(json["event"], "step");
  EXPECT_EQ(json["step"], 7);
  EXPECT_EQ(json["loss"].get<double>(), record.loss);
  EXPECT_EQ(json["grad_norm"].get<double>(), record.grad_norm);
  EXPECT_EQ(json["lr"].get<double>(), record.lr);
  EXPECT_EQ(json["tokens"], 2048);
  EXPECT_EQ(json["seconds"].get<double>(), record.seconds);
  EXPECT_EQ(json["tokens_per_second"].get<double>(), record.tokens_per_second);
  EXPECT_EQ(json["mfu"].get<double>(), record.mfu);
  EXPECT_EQ(json["skipped"], false);
}

TEST_F(JsonLines, DocumentsAddTargetsAndHowFullSequencesAre) {
  StartRecord start;
  start.data.packing = {.documents = 30, .positions = 800, .tokens = 760, .targets = 300};
  JsonlSink sink(path_);
  sink.write(start);
  sink.write(StepRecord{.step = 1, .targets = 17});
  const Json packing = Json::parse(lines().at(0))["data"]["packing"];
  EXPECT_EQ(packing.dump(), R"({"documents":30,"positions":800,"tokens":760,"targets":300})");
  EXPECT_EQ(Json::parse(lines().at(1))["targets"], 17);
  start.data.sequences = 20;
  EXPECT_NE(data_lines(start.data)
                .find("packs 30 documents into 20 sequences, 95 % full, 38 % of the positions are "
                      "targets"),
            std::string::npos)
      << data_lines(start.data);
}

TEST_F(JsonLines, NumbersThatAreNotFiniteAreNullAndTheStepSaysItWasSkipped) {
  JsonlSink(path_).write(StepRecord{.loss = std::numeric_limits<double>::quiet_NaN(),
                                    .grad_norm = std::numeric_limits<double>::infinity(),
                                    .skipped = true});
  const Json json = Json::parse(lines().at(0));
  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_TRUE(json["grad_norm"].is_null());
  EXPECT_EQ(json["skipped"], true);
}

TEST_F(JsonLines, TheRuleForSpikesAddsItsLimitAndItsCount) {
  JsonlSink sink(path_);
  sink.write(StepRecord{.grad_norm = 3, .skipped = true, .norm_limit = 2.5});
  sink.write(EndRecord{.spikes = 4});
  EXPECT_EQ(Json::parse(lines().at(0))["norm_limit"], 2.5);
  EXPECT_EQ(Json::parse(lines().at(1))["spikes"], 4);
}

TEST_F(JsonLines, TheStartSaysWhatRuns) {
  JsonlSink(path_).write(StartRecord{.versions = {{"kzero", "1.2"}, {"kokkos", "4.7"}},
                                     .git_hash = "abc",
                                     .hosts = {"node1", "node\xff"},
                                     .deck_file = "a.toml",
                                     .deck = "[model]\nlayers = 2\n",
                                     .data_ranks = 2,
                                     .tensor_ranks = 3,
                                     .peak = {2e11, 768, true},
                                     .data = {2, 1000, 90, 0.25, 10},
                                     .bits = "00000000000000ff",
                                     .planned_memory = {{"parameters", 100, 0}, {"io", 5, 0}},
                                     .planned_traffic = {{.group = "data",
                                                          .operation = "all_gather",
                                                          .purpose = "parameters",
                                                          .expected_elements_per_step = 9}}});
  const Json json = Json::parse(lines().at(0));
  EXPECT_EQ(json["event"], "start");
  EXPECT_EQ(json["versions"]["kokkos"], "4.7");
  EXPECT_EQ(json["git_hash"], "abc");
  EXPECT_EQ(json["hosts"].size(), 2U);
  EXPECT_EQ(json["deck"], "[model]\nlayers = 2\n");
  EXPECT_EQ(json["grid"], Json::parse(R"({"data":2,"tensor":3})"));
  EXPECT_EQ(json["plan"]["memory"], Json::parse(R"({"parameters":100,"io":5})"));
  EXPECT_EQ(json["plan"]["traffic"][0]["expected_elements_per_step"], 9);
  EXPECT_EQ(json["data"], Json::parse(R"({"files":2,"tokens":1000,"sequences":90,"epochs":0.25,)"
                                      R"("validation_sequences":10})"));
  EXPECT_EQ(json["peak"], Json::parse(R"({"flops_per_second":2e11,"source":"measured",)"
                                      R"("disturbed":true})"));
  EXPECT_EQ(json["bits"], "00000000000000ff");
  EXPECT_TRUE(json["state"].is_null()) << "it began at step 0";
  EXPECT_TRUE(json["limit"].is_null());
}

TEST_F(JsonLines, TheStartSumsBlendsAndEvaluationsUp) {
  StartRecord record;
  record.data.sources = {{"web", 0.75, 3, 5000, 300, 1.5}, {"books", 0.25, 1, 70, 6, 20}};
  record.data.evaluations = {{"held out", 1, 700, 40}};
  JsonlSink(path_).write(record);
  const Json data = Json::parse(lines().at(0))["data"];
  EXPECT_EQ(data["sources"],
            Json::parse(R"([{"name":"web","share":0.75,"files":3,"tokens":5000,"sequences":300,)"
                        R"("epochs":1.5},{"name":"books","share":0.25,"files":1,"tokens":70,)"
                        R"("sequences":6,"epochs":20.0}])"));
  EXPECT_EQ(data["evaluations"],
            Json::parse(R"([{"name":"held out","files":1,"tokens":700,"sequences":40}])"));
}

TEST_F(JsonLines, AnEvaluationIsAnEvent) {
  JsonlSink(path_).write(
      EvaluationRecord{.name = "held out", .step = 5, .loss = 2.5, .tokens = 64, .seconds = 0.5});
  EXPECT_EQ(timeless(lines().at(0)),
            R"({"event":"evaluation","name":"held out","step":5,"loss":2.5,)"
            R"("tokens":64,"seconds":0.5})");
}

TEST_F(JsonLines, TheStartSaysWhenTheJobHasToBeOver) {
  JsonlSink(path_).write(StartRecord{.limit = TimeLimit{"SLURM_JOB_END_TIME", 99.5, 60}});
  EXPECT_EQ(Json::parse(lines().at(0))["limit"],
            Json::parse(R"({"source":"SLURM_JOB_END_TIME","seconds_left":99.5,"stop_margin":60})"));
}

TEST_F(JsonLines, TheEndHoldsMemoryAndTrafficAsAgreed) {
  JsonlSink(path_).write(
      EndRecord{.reason = "completed",
                .steps = 20,
                .seconds = 1.5,
                .memory = {{0, 4096, 2048, {{"parameters", 8, 8}, {"gradients", 4, 4}}},
                           {1, 8192, 2048, {{"parameters", 8, 7}}}},
                .traffic = {{"data", "reduce_scatter", "gradients", 10, 40, 10}}});
  Json json = Json::parse(lines().at(0));
  EXPECT_EQ(json["seconds"], 1.5);
  json.erase("seconds");
  EXPECT_EQ(
      timeless(json.dump()),
      R"({"event":"end","reason":"completed","signal":"","exit_code":0,"steps":20,"memory":[)"
      R"({"rank":0,"resident_peak_bytes":4096,"resident_start_bytes":2048,"unplanned_peak_bytes":4084,"categories":{)"
      R"("parameters":{"planned_bytes":8,"peak_bytes":8},)"
      R"("gradients":{"planned_bytes":4,"peak_bytes":4}}},)"
      R"({"rank":1,"resident_peak_bytes":8192,"resident_start_bytes":2048,"unplanned_peak_bytes":8185,"categories":{)"
      R"("parameters":{"planned_bytes":8,"peak_bytes":7}}}],)"
      R"("traffic":[{"group":"data","operation":"reduce_scatter","purpose":"gradients",)"
      R"("elements_per_step":10,"bytes_per_step":40,"expected_elements_per_step":10,)"
      R"("bytes_between_nodes_per_step":0,"expected_bytes_between_nodes_per_step":0}]})");
}

TEST_F(JsonLines, EnergyIsInTheEndAndInNodesIfItIsMeasured) {
  JsonlSink sink(path_);
  EndRecord end;
  sink.write(end);
  end.energy = {1500, 0.5, 30, {"NVML", "RAPL"}, 3, 2, 8, 8};
  sink.write(end);
  end.energy->joules = std::numeric_limits<double>::quiet_NaN();
  end.energy->joules_per_token.reset();
  sink.write(end);
  NodesRecord nodes;
  nodes.joules = 2.5;
  sink.write(nodes);
  EXPECT_FALSE(Json::parse(lines().at(0)).contains("energy"));
  EXPECT_EQ(
      Json::parse(lines().at(1))["energy"].dump(),
      R"({"joules":1500.0,"watts":30.0,"sources":["NVML","RAPL"],"nodes":3,"measured_nodes":2,)"
      R"("devices":8,"measured_devices":8,"joules_per_token":0.5})");
  EXPECT_TRUE(Json::parse(lines().at(2))["energy"]["joules"].is_null());
  EXPECT_EQ(Json::parse(lines().at(3))["joules"], 2.5);
}

TEST_F(JsonLines, ValidationAndCheckpointAreEvents) {
  JsonlSink sink(path_);
  sink.write(ValidationRecord{.step = 5, .loss = 2.5, .tokens = 64, .seconds = 0.5});
  sink.write(CheckpointRecord{.step = 6,
                              .folder = "runs/step_6",
                              .bytes = 99,
                              .seconds = 0.25,
                              .stall_seconds = 0.125,
                              .state = "0123456789abcdef"});
  EXPECT_EQ(timeless(lines().at(0)),
            R"({"event":"validation","step":5,"loss":2.5,"tokens":64,"seconds":0.5})");
  EXPECT_EQ(
      timeless(lines().at(1)),
      R"({"event":"checkpoint","step":6,"folder":"runs/step_6","bytes":99,"seconds":0.25,"stall_seconds":0.125,"state":"0123456789abcdef"})");
}

TEST_F(JsonLines, NodesAreAnEvent) {
  JsonlSink(path_).write(NodesRecord{.step = 40,
                                     .steps = 20,
                                     .seconds = 52,
                                     .count = 9,
                                     .compute = {6, 10.25, 39.25},
                                     .wait = {0.5, 1, 2},
                                     .rows = {{.host = "node3",
                                               .first_rank = 4,
                                               .ranks = 2,
                                               .compute_seconds = 39.25,
                                               .wait_seconds = 0.5,
                                               .no_core_seconds = 0.25,
                                               .busiest_rank = 5,
                                               .busiest_seconds = 39.5,
                                               .slow = true}}});
  EXPECT_EQ(
      timeless(lines().at(0)),
      R"({"event":"nodes","step":40,"steps":20,"seconds":52.0,"by":"node","count":9,)"
      R"("compute_seconds":{"min":6.0,"mean":10.25,"max":39.25},)"
      R"("wait_seconds":{"min":0.5,"mean":1.0,"max":2.0},)"
      R"("nodes":[{"host":"node3","first_rank":4,"ranks":2,"compute_seconds":39.25,)"
      R"("wait_seconds":0.5,"no_core_seconds":0.25,"busiest_rank":5,"busiest_seconds":39.5,"slow":true}]})");
  JsonlSink(path_).write(NodesRecord{.by_rank = true});
  EXPECT_EQ(Json::parse(lines().at(1))["by"], "rank");
}

TEST_F(JsonLines, EveryRecordHasTheTimeAtWhichItIsWritten) {
  const auto now = [] {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  JsonlSink sink(path_);
  const double before = now();
  sink.write(StartRecord{.process_seconds = 2.5});
  sink.write(StepRecord{});
  sink.write(ValidationRecord{});
  sink.write(EvaluationRecord{});
  sink.write(CheckpointRecord{});
  sink.write(NodesRecord{});
  sink.write(EndRecord{});
  const double after = now(), rounding = 0.001;
  for (const std::string& line : lines()) {
    const double time = Json::parse(line)["time"].get<double>();
    EXPECT_GE(time, before - rounding) << line;
    EXPECT_LE(time, after + rounding) << line;
  }
  EXPECT_EQ(lines().size(), 7U);
  EXPECT_EQ(Json::parse(lines().at(0))["process_seconds"], 2.5);
}

TEST_F(JsonLines, EachRecordIsInTheFileWhenWriteReturns) {
  JsonlSink sink(path_);
  for (Index step = 0; step < 3; ++step) {
    sink.write(StepRecord{.step = step});
    EXPECT_EQ(lines().size(), static_cast<std::size_t>(step) + 1);
  }
}

TEST_F(JsonLines, ARestartAppendsAndARunFromStep0BeginsAFile) {
  for (const Index first_step : {0, 1, 0}) {
    JsonlSink sink(path_);
    sink.write(StartRecord{.first_step = first_step});
    sink.write(StepRecord{.step = first_step});
  }
  EXPECT_EQ(lines().size(), 2U);
  path_ = folder_.path() / "runs" / "new" / "metrics.1.jsonl";
  EXPECT_EQ(lines().size(), 4U);
}

TEST_F(JsonLines, AnEmptyPathWritesNothing) { EXPECT_NO_THROW(JsonlSink("").write(StepRecord{})); }

TEST_F(JsonLines, AFullDiskIsAnErrorOfFilesThatNamesTheFile) {
  JsonlSink sink("/dev/full");
  try {
    sink.write(StepRecord{});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::files);
    EXPECT_NE(std::string(error.what()).find("/dev/full"), std::string::npos) << error.what();
  }
}

TEST_F(JsonLines, AFolderThatCannotBeMadeIsAnErrorOfFiles) {
  std::ofstream(folder_.path() / "file") << "text";
  try {
    JsonlSink sink(folder_.path() / "file" / "metrics.jsonl");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::files);
  }
}

}  // namespace
}  // namespace kzero::metrics

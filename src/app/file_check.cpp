#include "app/file_check.hpp"

#include <memory>

#include "app/node_problems.hpp"
#include "app/writable.hpp"
#include "base/bytes.hpp"
#include "base/printable.hpp"
#include "checkpoint/folder/retention.hpp"
#include "convert/adapter.hpp"
#include "convert/tokenizer_files.hpp"
#include "convert/weights.hpp"
#include "grid/agreement.hpp"
#include "infer/token_bytes.hpp"
#include "metrics/line_file.hpp"
#include "model/definition.hpp"
#include "optim/optimizer.hpp"
#include "run/trace_file.hpp"
#include "runtime/host_name.hpp"

namespace kzero::app {

namespace {

/// Bytes of a checkpoint: the optimizer's state in fp32, and the overhead of HDF5 and the manifest
/// for each stored range. The overhead was measured: 1.6 KiB per parameter and 8 KiB per
/// rank.
Index checkpoint_bytes(const deck::Config& config) {
  constexpr Index bytes_of_range = 2048, ranges_of_rank = 4;
  const param::Table table = param::trained_of(model::define(config)->table({}));
  const Index tensor = config.grid.tensor, ranks = std::max<Index>(1, config.grid.data) * tensor;
  Index parameters = 0;
  for (const param::UnitSpec& unit : table) parameters += static_cast<Index>(unit.params.size());
  const auto optimizer = optim::make_optimizer(config.optimizer);
  return param::bytes_per_element(optimizer->state()) * param::elements_of(table) +
         bytes_of_range * (parameters * tensor + ranges_of_rank * ranks);
}

/// A checkpoint is complete before the previous one is removed, so two need space; an existing one
/// is one of the two.
void require_room(const deck::Config& config) {
  const auto there = static_cast<Index>(checkpoint::candidates(config.checkpoint.folder).size());
  const Index bytes = checkpoint_bytes(config), count = there > 0 ? 1 : 2;
  const auto left = free_bytes(config.checkpoint.folder);
  KZERO_REQUIRE(!left || *left >= count * bytes, ExitCode::files,
                "checkpoint.folder: {} has room for {}, but {} of {} {} to fit; make room or name "
                "another file system",
                config.checkpoint.folder, format_bytes(*left),
                count == 1 ? "one more checkpoint" : "two checkpoints", format_bytes(bytes),
                count == 1 ? "has" : "have");
}

}  // namespace

run::RunInputs check_files(const deck::Config& config, const Inspection& inspection,
                           ProblemList& problems) {
  run::RunInputs inputs;
  inputs.dataset = data::open_dataset(config, problems);
  inputs.dataset.check_tokens(inspection.part, inspection.parts, problems);
  if (!config.model.initial.empty()) {
    problems.collect("model.initial", [&] {
      const auto weights = std::make_shared<const convert::Weights>(
          config.model.initial, config.model, param::base_of(model::define(config)->table({})));
      KZERO_REQUIRE(
          weights->new_rows() == 0 || !deck::trains_adapters(config.lora), ExitCode::usage,
          "model.vocab = {}, but {} has {} tokens, and adapters (lora.rank) train no rows "
          "for new ones; train all parameters, or use the tokens that there are",
          config.model.vocab, printable(config.model.initial),
          config.model.vocab - weights->new_rows());
      inputs.initial_note = weights->note();
      inputs.initial = [weights](const param::ParamSpec& p, const checkpoint::Range& range,
                                 std::span<float> values) {
        weights->load_range(p.name, range, values);
      };
    });
  }
  if (!config.lora.initial.empty()) {
    problems.collect("lora.initial", [&] {
      const auto weights = std::make_shared<const convert::AdapterWeights>(
          config.lora.initial, config.lora, config.model.family, model::define(config)->table({}));
      inputs.adapters_base = weights->base_hash();
      inputs.adapters = [weights](const param::ParamSpec& p, const checkpoint::Range& range,
                                  std::span<float> values) {
        weights->load_range(p.name, range, values);
      };
    });
  }
  const std::string& folder = config.checkpoint.folder;
  if (!folder.empty() && inspection.tries_checkpoints) {
    problems.collect("checkpoint.folder", [&] {
      require_writable_folder("checkpoint.folder", folder);
      if (inspection.is_first) require_room(config);
    });
  }
  const auto try_file = [&](const std::string& key, const std::string& file, auto require_kind) {
    if (file.empty() || !inspection.is_first) return;
    problems.collect(key, [&] {
      require_kind(file);
      require_writable_file(key, file);
    });
  };
  try_file("run.metrics", config.run.metrics, metrics::require_metrics_file);
  try_file("run.profile", config.run.profile, run::require_trace_file);
  try_file("run.end_file", config.run.end_file, [](const std::string&) {});
  return inputs;
}

void check_tokenizer(const deck::Config& config, ProblemList& problems) {
  const std::string file = convert::find_tokenizer("", "", config.data).string();
  if (file.empty()) return;
  problems.collect(file, [&] {
    try {
      infer::token_bytes(file, config.model.vocab);
    } catch (const Error& error) {
      fail(ExitCode::files,
           "{}; kzero generate would refuse it (training does not read it; to continue, "
           "move it out of the data's folder)",
           error.what());
    }
  });
}

run::RunInputs check_files(const deck::Config& config, const runtime::Session& session,
                           const grid::Group& world) {
  run::RunInputs inputs;
  ProblemList mine;
  grid::collectively(world, [&] {
    inputs = check_files(config,
                         {.part = session.rank(),
                          .parts = session.size(),
                          .tries_checkpoints = session.node_rank() == 0,
                          .is_first = session.rank() == 0},
                         mine);
  });
  const auto of_ranks = world.gather(pack(runtime::host_name(), mine));
  const std::string text = world.broadcast(merged(of_ranks).text());
  if (!text.empty()) throw grid::AgreedError(ExitCode::files, text);
  return inputs;
}

}  // namespace kzero::app

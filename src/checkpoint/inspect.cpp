#include "checkpoint/inspect.hpp"

#include <fmt/ranges.h>

#include "base/bytes.hpp"
#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "checkpoint/folder/origin.hpp"
#include "checkpoint/folder/retention.hpp"
#include "checkpoint/format/manifest.hpp"
#include "checkpoint/format/validate.hpp"
#include "checkpoint/format/verify.hpp"

namespace kzero::checkpoint {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> some_candidates(const fs::path& path) {
  auto paths = candidates(path);
  KZERO_REQUIRE(
      !paths.empty(), ExitCode::files,
      "{}: is not a checkpoint and holds none (a checkpoint is a folder step_... with a {})",
      path.string(), manifest_name);
  return paths;
}

Manifest manifest_of(const fs::path& path, const ParametersOf& parameters_of) {
  Manifest manifest = read_manifest(path);
  require_named_after(path, manifest.step);
  require_parameters(manifest, parameters_of, path / manifest_name);
  return manifest;
}

/// The files that the model brought; empty if the checkpoint has none.
std::string describe_origin(const fs::path& path) {
  const fs::path folder = origin_folder(path);
  if (folder.empty()) return "";
  std::vector<std::string> names;
  try {
    for (const OriginFile& file : read_origin(folder).files) names.push_back(file.name);
  } catch (const Error& error) {
    return fmt::format("origin      damaged: {}\n", printable_lines(error.what()));
  }
  return fmt::format("origin      {} in {}\n", fmt::join(names, ", "), printable(folder.string()));
}

std::string shards_and_tensors(const Manifest& m) {
  std::string text;
  for (const ShardFile& shard_file : m.shard_files) {
    text += fmt::format("  {}  {} bytes, {} tensors or parts\n", printable(shard_file.file),
                        shard_file.bytes, shard_file.shards.size());
  }
  text += "tensors\n";
  for (const Parameter& p : m.parameters) {
    text += fmt::format("  {} [{}]\n", printable(p.name), fmt::join(p.shape, ", "));
  }
  return text;
}

/// Tells which tokens a token sees; empty if it sees all before it in every layer.
std::string describe_windows(const deck::Model& model) {
  if (model.window == 0) return "";
  const Index every = model.full_attention_every;
  return fmt::format("attention   a window of {} tokens{}\n", model.window,
                     every == 0 ? "" : fmt::format(", none in one layer of every {}", every));
}

/// Tells how many experts compute a token; empty for a dense model.
std::string describe_experts(const deck::Model& model) {
  if (model.experts == 0) return "";
  std::string text = fmt::format("experts     {} in each layer, of which {} compute a token",
                                 model.experts, model.experts_per_token);
  if (model.shared_feed_forward > 0)
    text += fmt::format(", and a shared one of width {}", model.shared_feed_forward);
  if (model.router_score == deck::RouterScore::sigmoid) text += "; scores are sigmoids";
  if (model.router_bias) text += "; biases balance them";
  return text + "\n";
}

}  // namespace

std::string names_of(const param::StateArrays& arrays, const param::ReducedArrays& reduced) {
  std::string names = param::names_of(arrays);
  for (const param::ReducedArray& array : reduced)
    names += fmt::format(", {} of its {}", array.name,
                         array.axis == param::Axis::row ? "rows" : "columns");
  return names;
}

namespace {

std::string describe_manifest(const fs::path& path, const Manifest& m) {
  Index bytes = 0;
  Index elements = 0;
  for (const ShardFile& shard_file : m.shard_files) bytes += shard_file.bytes;
  for (const Parameter& p : m.parameters) elements += p.elements();
  std::string text = fmt::format(
      "checkpoint  {}\n"
      "format      {}, written by kzero {} ({})\n"
      "progress    {} steps, {} samples, {} tokens, {} skipped steps\n"
      "grid        {} data x {} tensor, stage {}, {}, loss scale {}\n"
      "model       {}, layers {}, hidden {}, heads {}, sequence {}, vocab {}, feed_forward {}, {} "
      "embeddings\n"
      "optimizer   {}, {} updates\n"
      "parameters  {} in {} tensors, each with {}; hash {}\n"
      "shards      {} with {}\n",
      printable(path.string()), format_version, printable(m.kzero_version), printable(m.git_hash),
      m.step, m.samples, m.tokens, m.skipped_steps, m.data_ranks, m.tensor_ranks, m.stage,
      printable(m.precision), m.loss_scale, name_of(m.model.family), m.model.layers, m.model.hidden,
      m.model.heads, m.model.sequence, m.model.vocab, m.model.feed_forward,
      m.model.tied_embeddings ? "tied" : "untied", printable(m.optimizer),
      m.step - m.skipped_steps - m.optimizer_start, elements, m.parameters.size(),
      printable(names_of(m.state_arrays, m.reduced_arrays)), format_checksum(m.parameter_hash),
      m.shard_files.size(), format_bytes(bytes));
  text += describe_windows(m.model);
  text += describe_experts(m.model);
  if (m.adapters)
    text += fmt::format(
        "adapters    rank {}, alpha {}, of {}; the weights that they change, of hash {}, are not "
        "in the checkpoint\n",
        m.adapters->lora.rank, m.adapters->lora.alpha,
        printable(fmt::format("{}", fmt::join(m.adapters->lora.targets, ", "))),
        format_checksum(m.adapters->base_hash));
  if (m.loss)
    text += fmt::format("loss        {} in its last step, {}\n", m.loss->last,
                        m.loss->sane_step == m.step - 1
                            ? "within its range"
                            : fmt::format("beyond its range since step {}", m.loss->sane_step + 1));
  text += describe_origin(path);
  return text;
}

}  // namespace

std::string describe(const fs::path& path, const ParametersOf& parameters_of, Extent extent) {
  std::string problems;
  for (const fs::path& candidate : some_candidates(path)) {
    try {
      const Manifest manifest = manifest_of(candidate, parameters_of);
      return problems + describe_manifest(candidate, manifest) +
             (extent == Extent::tensors ? shards_and_tensors(manifest) : "");
    } catch (const Error& error) {
      problems += fmt::format("passed over: {}\n", printable_lines(error.what()));
    }
  }
  fail(ExitCode::files, "{}: holds no readable checkpoint\n{}", path.string(), problems);
}

std::vector<std::string> verify(const fs::path& path, const ParametersOf& parameters_of) {
  std::vector<std::string> problems;
  const std::vector<fs::path> paths = some_candidates(path);
  try {
    if (const fs::path folder = origin_folder(paths.front()); !folder.empty()) read_origin(folder);
  } catch (const Error& error) {
    problems.emplace_back(error.what());
  }
  for (const fs::path& candidate : paths) {
    try {
      const Manifest manifest = manifest_of(candidate, parameters_of);
      WantedShards none;
      const std::size_t before = problems.size();
      for (const ShardFile& shard_file : manifest.shard_files) {
        const auto found = verify_shard(candidate, manifest, shard_file, {}, none);
        problems.insert(problems.end(), found.begin(), found.end());
      }
      if (problems.size() > before) continue;
      const std::string gap = coverage_problem(manifest);
      if (!gap.empty())
        problems.push_back(fmt::format("{}: {}", (candidate / manifest_name).string(), gap));
    } catch (const Error& error) {
      problems.emplace_back(error.what());
    }
  }
  return problems;
}

}  // namespace kzero::checkpoint

#include "engine/buffers.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "comm/placement.hpp"
#include "engine/memory_report.hpp"
#include "runtime/pinned_copy.hpp"

namespace kzero::engine {

namespace {

using memory::Category;

template <class T>
std::vector<zero::StateBuffer> state_buffers(memory::Arenas& arenas, const deck::Config& config,
                                             const Blueprint& b, Index rank) {
  KZERO_REQUIRE(
      !b.optimizer->runs_on_host_alone() || host_reaches_state(config), ExitCode::usage,
      "optimizer.kind = \"{}\" updates on the host's cores alone: in builds for devices it needs "
      "zero.offload = \"host\"",
      b.optimizer->kind());
  std::vector<zero::StateBuffer> buffers;
  for (const param::StateArray& array : b.state_arrays()) {
    const bool is_parameters = array.name == param::master_weights && dtype_of<T> == Dtype::fp32;
    if (is_parameters && !offloads(config)) {
      buffers.emplace_back();
      continue;
    }
    const auto category = offloads(config) ? Category::offloaded : Category::optimizer;
    buffers.emplace_back(arenas, category, b.trained, b.trained_layout, array,
                         zero::StatePlacement{b.stage.optimizer, rank});
  }
  return buffers;
}

template <class T>
std::optional<optim::CpuOffloadOptimizer<T>> offload_optimizer_of(memory::Arenas& arenas,
                                                                  const deck::Config& config,
                                                                  const Blueprint& b) {
  if (!offloads(config)) return std::nullopt;
  const bool whole = b.stage.optimizer == zero::Placement::replicated;
  Index largest = 1;
  for (const param::UnitLayout& unit : b.trained_layout.units())
    largest = std::max(largest, whole ? unit.padded : unit.shard);
  // Gradients and parameters are copied in chunks of at most a bucket.
  const auto width = static_cast<Index>(sizeof(T));
  return optim::CpuOffloadOptimizer<T>(arenas, std::min(config.zero.bucket, 2 * largest * width));
}

std::span<float> take_on_host(memory::Arenas& arenas, Index elements) {
  const auto category = tensor::on_host ? Category::io : Category::offloaded;
  return {arenas.take<float>(category, elements), static_cast<std::size_t>(elements)};
}

std::span<float> take_staging(memory::Arenas& arenas, const deck::Config& config) {
  if (config.checkpoint.folder.empty() || host_reaches_state(config)) return {};
  return take_on_host(arenas, StateStaging::elements);
}

/// Returns how many elements of an array are in this rank's shards of all units, excluding gaps.
Index owned_elements(const Blueprint& b, const param::StateArray& array) {
  Index elements = 0;
  for (std::size_t u = 0; u < b.trained.size(); ++u) {
    const param::UnitLayout& unit = b.trained_layout.units()[u];
    elements += array.extent == param::Extent::all
                    ? unit.shard
                    : zero::max_held(b.trained[u], unit, array, zero::Placement::partitioned);
  }
  return elements;
}

std::span<float> take_snapshot(memory::Arenas& arenas, const deck::Config& config,
                               const Blueprint& b) {
  if (config.checkpoint.folder.empty() || !config.checkpoint.asynchronous) return {};
  Index elements = 0;
  for (const param::StateArray& array : b.state_arrays()) elements += owned_elements(b, array);
  return take_on_host(arenas, elements);
}

std::span<SpanRecord> take_spans(memory::Arenas& arenas, const deck::Run& run) {
  if (run.profile.empty()) return {};
  const Index count = run.profile_buffer / static_cast<Index>(sizeof(SpanRecord));
  const auto category = tensor::on_host ? Category::io : Category::offloaded;
  return {arenas.take<SpanRecord>(category, count), static_cast<std::size_t>(count)};
}

template <class T>
std::optional<MatrixExchange<T>> matrices_of(memory::Arenas& arenas, const deck::Config& config,
                                             const Blueprint& b, Index rank) {
  if (b.matrices.empty()) return std::nullopt;
  return MatrixExchange<T>(arenas, b.matrices, config.optimizer.polynomials, rank,
                           comm::overlap_of(config));
}

template <class T>
std::optional<PreferencePass<T>> preference_of(memory::Arenas& arenas, const deck::Config& config) {
  if (!deck::prefers(config.preference)) return std::nullopt;
  return PreferencePass<T>(arenas, config.preference,
                           config.train.micro_batch * config.model.sequence);
}

Index teacher_top(const deck::Config& config) {
  return deck::distills(config.distill) ? config.distill.top : 0;
}

/// The numbers of a micro-batch in addition to its losses: of pairs, or KL of each chunk.
Index figures_of(const deck::Config& config, const Blueprint& b) {
  if (deck::distills(config.distill)) return b.batches.own_chunks();
  return deck::prefers(config.preference) ? PreferencePass<float>::figures : 0;
}

std::optional<GradientHashes> hashes_of(memory::Arenas& arenas, const deck::Config& config,
                                        const Blueprint& b) {
  if (config.run.verify_every == 0) return std::nullopt;
  return GradientHashes(arenas, b.max_rounds(), std::ssize(b.table));
}

/// Ranks are counted node by node, as in data::BatchPlan.
model::SequenceRank sequence_rank(const data::BatchPlan& plan, Index data_rank) {
  return {plan.on_nodes().position_of(data_rank) % plan.sequence, plan.sequence, plan.chunks};
}

zero::GradientOptions gradient_options(const deck::Config& config, const Blueprint& blueprint) {
  std::vector<zero::SumPlan> later;
  for (const StepPlan& phase : blueprint.phases) later.push_back(phase.sums);
  return {.stage = blueprint.stage,
          .adds_reduced = blueprint.adds_reduced,
          .sums = blueprint.sums,
          .later = std::move(later),
          .bucket = config.zero.bucket,
          .overlap = comm::overlap_of(config),
          .order = config.zero.reduction};
}

}  // namespace

template <class T>
Buffers<T>::Buffers(memory::Arenas& arenas, const deck::Config& config, const Blueprint& b,
                    Index rank, Index threads, const Links& links)
    : parameters(arenas, b.layout, b.stage,
                 std::max(b.training.gathered_elements(), b.validation.gathered_elements()), rank),
      gradients(arenas, b.trained_layout, gradient_options(config, b), b.training.target_elements(),
                rank),
      state(state_buffers<T>(arenas, config, b, rank)),
      sums(arenas, b, !host_reaches_state(config)),
      offload_optimizer(offload_optimizer_of<T>(arenas, config, b)),
      model(b.definition->make<T>(arenas, {{.batch = config.train.micro_batch,
                                            .threads = threads,
                                            .attention = config.run.attention,
                                            .fixed_order = config.run.deterministic,
                                            .documents = deck::has_documents(config.data),
                                            .tile_rows = config.train.tile_rows,
                                            .top = teacher_top(config)},
                                           links.gemm,
                                           {b.tensor, links.tensor, config.zero.bucket},
                                           {sequence_rank(b.batches, rank), links.sequence}})),
      matrices(matrices_of<T>(arenas, config, b, rank)),
      batches(arenas, {.batch = config.train.micro_batch,
                       .sequence = config.model.sequence,
                       .vocab = config.model.vocab,
                       .documents = deck::has_documents(config.data),
                       .weights = config.data.format == deck::DataFormat::documents,
                       .pairs = deck::prefers(config.preference),
                       .top = teacher_top(config),
                       .teacher_weight = static_cast<float>(config.distill.weight),
                       .part = sequence_rank(b.batches, rank)}),
      preference(preference_of<T>(arenas, config)),
      step_sums(arenas, b.max_rounds(), b.batches.own_chunks(),
                config.model.layers * config.model.experts, figures_of(config, b)),
      hashes(hashes_of(arenas, config, b)),
      staging(take_staging(arenas, config)),
      snapshot(take_snapshot(arenas, config, b)),
      spans(take_spans(arenas, config.run)),
      optimizer_(b.stage.optimizer) {}

template <class T>
memory::Arenas Buffers<T>::measured(const deck::Config& config, const Blueprint& blueprint,
                                    Index data_rank, Index threads) {
  return memory::measured(
      [&](memory::Arenas& arenas) { Buffers(arenas, config, blueprint, data_rank, threads, {}); });
}

template <class T>
T* Buffers<T>::updated(Index u) const {
  return parameters.share(u, optimizer_);
}

template <class T>
optim::State Buffers<T>::state_of(Index u) const {
  optim::State unit;
  for (const zero::StateBuffer& array : state) {
    if constexpr (dtype_of<T> == Dtype::fp32) {
      if (array.is_elsewhere()) {
        unit.add(updated(u));
        continue;
      }
    }
    if (const param::CompactRange* range = array.range(u)) {
      unit.add(array.unit(u), *range);
    } else {
      unit.add(array.unit(u));
    }
  }
  return unit;
}

#define KZERO_INSTANTIATE(T) template struct Buffers<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

memory::Bytes planned_bytes(const deck::Config& config, const Blueprint& blueprint, Index threads) {
  return with_type(config.train.precision, [&](auto type) {
    return Buffers<decltype(type)>::measured(config, blueprint, 0, threads).bytes();
  });
}

StateStaging::StateStaging(std::span<float> room) : room_(room), stream_(runtime::make_stream()) {}

std::span<float> StateStaging::slot(std::size_t number) {
  if (room_.empty()) {
    own_room_ = decltype(own_room_)("kzero::engine::host_staging", elements);
    room_ = {own_room_.data(), own_room_.size()};
  }
  const std::size_t size = room_.size() / slots;
  return room_.subspan(number * size, size);
}

void StateStaging::bring(std::size_t number, const float* from, std::span<float> to) {
  runtime::copy_to_host(stream_, from, to.data(), std::ssize(to));
  copied_[number].record(stream_);
}

void StateStaging::send(std::size_t number, std::span<const float> from, float* to) {
  runtime::copy_to_device(stream_, from.data(), to, std::ssize(from));
  copied_[number].record(stream_);
}

void StateStaging::wait(std::size_t number) { copied_[number].synchronize(); }

}  // namespace kzero::engine

#include "plan/work.hpp"

namespace kzero::plan {

namespace {

double ratio(Index a, Index b) { return static_cast<double>(a) / static_cast<double>(b); }

/// Bytes that an update moves per element. It reads and writes its state arrays, reads the gradient
/// and, in 16 bits, writes the parameter: 28 bytes with AdamW.
Index moved_per_element(const param::StateArrays& arrays, Dtype precision) {
  const Index width = bytes_of(precision);
  return 2 * param::bytes_per_element(arrays) + width + (precision == Dtype::fp32 ? 0 : width);
}

/// Bytes that an update moves per byte in the optimizer category. In fp32 the master weights are
/// the parameters, which belong to another category.
double update_traffic(const param::StateArrays& arrays, Dtype precision) {
  const Index width = precision == Dtype::fp32 ? bytes_of(precision) : 0;
  const Index held = param::bytes_per_element(arrays) - width;
  return held == 0 ? 0 : ratio(moved_per_element(arrays, precision), held);
}

}  // namespace

Index updated_elements(const engine::Blueprint& blueprint) {
  const bool is_replicated = blueprint.stage.optimizer == zero::Placement::replicated;
  Index elements = 0;
  for (const param::UnitLayout& unit : blueprint.trained_layout.units())
    elements += is_replicated ? unit.padded : unit.shard;
  return elements;
}

Work work_of_step(const deck::Config& config, const engine::Blueprint& blueprint,
                  const memory::Bytes& held, Index sent_bytes) {
  const Index ranks = config.grid.data * config.grid.tensor;
  const double tokens = ratio(config.train.global_batch * config.model.sequence, ranks);
  const auto arrays = blueprint.state_arrays();
  const bool on_host = engine::offloads(config);
  const double optimizer_bytes =
      on_host ? static_cast<double>(moved_per_element(arrays, config.train.precision) *
                                    updated_elements(blueprint))
              : update_traffic(arrays, config.train.precision) *
                    static_cast<double>(held[position(memory::Category::optimizer)]);
  const param::Trace& trace = blueprint.training.trace();
  const auto again = model::recomputed_per_token(trace);
  const auto width = static_cast<double>(bytes_of(config.train.precision));
  return {.operations = model::flops_per_token(trace) * tokens,
          .recomputed_operations = again.operations * tokens,
          .recomputed_bytes = again.elements * width * tokens,
          .offloaded_bytes = again.offloaded * width * tokens,
          .optimizer_bytes = optimizer_bytes,
          .updates_on_host = on_host,
          .matrix_operations = blueprint.matrices.empty() ? 0 : blueprint.matrices.max_operations(),
          .sent_bytes = static_cast<double>(sent_bytes)};
}

}  // namespace kzero::plan

#include "plan/work.hpp"

namespace kzero::plan {

namespace {

double ratio(Index a, Index b) { return static_cast<double>(a) / static_cast<double>(b); }

/// Bytes that an update moves per byte in the optimizer category. It reads and writes an element's
/// state arrays, reads the gradient and, in 16 bits, writes the parameter: 28 bytes with AdamW. In
/// fp32 the master weights are the parameters, which belong to another category.
double update_traffic(const param::StateArrays& arrays, Dtype precision) {
  const bool fp32 = precision == Dtype::fp32;
  const Index width = bytes_of(precision);
  const Index moved = 2 * param::bytes_per_element(arrays) + width + (fp32 ? 0 : width);
  const Index held = param::bytes_per_element(arrays) - (fp32 ? width : 0);
  return held == 0 ? 0 : ratio(moved, held);
}

}  // namespace

Work work_of_step(const deck::Config& config, const engine::Blueprint& blueprint,
                  const memory::Bytes& held, Index sent_bytes) {
  const Index ranks = config.grid.data * config.grid.tensor;
  const double tokens = ratio(config.train.global_batch * config.model.sequence, ranks);
  const auto optimizer = static_cast<double>(held[position(memory::Category::optimizer)]);
  const model::Definition& model = *blueprint.definition;
  const auto again = model.recomputed_per_token();
  const auto width = static_cast<double>(bytes_of(config.train.precision));
  return {
      .operations = model.flops_per_token() * tokens,
      .recomputed_operations = again.operations * tokens,
      .recomputed_bytes = again.elements * width * tokens,
      .optimizer_bytes =
          update_traffic(blueprint.state_arrays(), config.train.precision) * optimizer,
      .matrix_operations = blueprint.matrices.empty() ? 0 : blueprint.matrices.most_operations(),
      .sent_bytes = static_cast<double>(sent_bytes)};
}

}  // namespace kzero::plan

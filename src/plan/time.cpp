#include "plan/time.hpp"

namespace kzero::plan {

namespace {

double ratio(Index a, Index b) { return static_cast<double>(a) / static_cast<double>(b); }

/// Bytes that an update moves for each byte of optimizer state. In 16 bits an element has 12 bytes
/// of state, read and written, a gradient of 2 read and a parameter of 2 written: 28. In fp32 two
/// moments, 8 bytes, and the parameters themselves are read and written, a gradient of 4 read: 28.
double update_traffic(Dtype precision) { return 28.0 / (precision == Dtype::fp32 ? 8 : 12); }

}  // namespace

Work work_of_step(const deck::Config& config, const model::Definition& model,
                  const memory::Bytes& held, Index sent_bytes) {
  const Index ranks = config.grid.data * config.grid.tensor;
  const double tokens = ratio(config.train.global_batch * config.model.sequence, ranks);
  const auto optimizer = static_cast<double>(held[position(memory::Category::optimizer)]);
  const auto again = model.recomputed_per_token();
  const auto width = static_cast<double>(bytes_of(config.train.precision));
  return {.operations = model.flops_per_token() * tokens,
          .recomputed_operations = again.operations * tokens,
          .recomputed_bytes = again.elements * width * tokens,
          .optimizer_bytes = update_traffic(config.train.precision) * optimizer,
          .sent_bytes = static_cast<double>(sent_bytes)};
}

Estimate estimate(const Work& work, const Rates& rates) {
  return {.rates = rates,
          .model = work.operations / rates.operations,
          .recompute = work.recomputed_operations / rates.operations +
                       work.recomputed_bytes / rates.memory_bytes,
          .optimizer = work.optimizer_bytes / rates.memory_bytes,
          .messages = work.sent_bytes / rates.sent_bytes};
}

}  // namespace kzero::plan

#include "train/blueprint.hpp"

#include "model/gpt_trace.hpp"

namespace kzero::train {

namespace {

zero::ScheduleOptions schedule_options(const deck::Config& config, const zero::Stage& stage) {
  return {stage, config.zero.prefetch_units, overlap_of(config) == comm::Overlap::yes};
}

}  // namespace

Blueprint::Blueprint(const deck::Config& config, Index data_ranks, const model::TensorRank& rank)
    : tensor(rank),
      table(model::gpt_table(config.model, rank)),
      layout(table, data_ranks),
      stage(zero::stage(config.zero.stage, data_ranks)),
      micro_batches(
          std::max<Index>(1, config.train.global_batch / data_ranks / config.train.micro_batch)),
      adds_reduced(config.zero.accumulate == deck::Accumulate::reduced && micro_batches > 1),
      training(model::gpt_trace(config.model, config.recompute.mode), layout,
               schedule_options(config, stage)),
      validation(model::gpt_validation_trace(config.model), layout,
                 schedule_options(config, stage)) {}

}  // namespace kzero::train

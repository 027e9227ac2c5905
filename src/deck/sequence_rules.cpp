#include "deck/rule_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "deck/schema.hpp"

namespace kzero::deck {

namespace {

class SequenceRules : ViolationList {
 public:
  explicit SequenceRules(Config& config) : config_(config) {}

  std::vector<Violation> apply() {
    resolve();
    check_ranks();
    check_chunks();
    check_heads();
    check_settings();
    return std::move(violations_);
  }

 private:
  void resolve() {
    Train& train = config_.train;
    if (train.sequence_chunks == 0) train.sequence_chunks = config_.grid.sequence;
    if (train.sequence_chunks == config_.grid.sequence) chunks_key_ = "grid.sequence";
    if (train.micro_batch == 0 && train.sequence_chunks > 1) train.micro_batch = 1;
  }

  void check_ranks() {
    const Grid& grid = config_.grid;
    refuse_if(grid.data > 0 && grid.data % grid.sequence != 0, {"grid.sequence", "grid.data"},
              fmt::format("grid.sequence must divide the {} data-parallel ranks, found {}",
                          grid.data, grid.sequence));
  }

  void check_chunks() {
    const Train& train = config_.train;
    const Index chunks = train.sequence_chunks, ranks = config_.grid.sequence;
    refuse_if(chunks % ranks != 0, {"train.sequence_chunks", "grid.sequence"},
              fmt::format("train.sequence_chunks must be a multiple of grid.sequence = {}, found "
                          "{}",
                          ranks, chunks));
    const Index tokens = config_.model.sequence;
    refuse_if(
        tokens % chunks != 0, {chunks_key_, "model.sequence"},
        fmt::format("{} must divide model.sequence = {}, found {}", chunks_key_, tokens, chunks));
    refuse_if(chunks > 1 && train.micro_batch != 1, {"train.micro_batch", chunks_key_},
              fmt::format("{} = {} needs train.micro_batch = 1, found {}", chunks_key_, chunks,
                          train.micro_batch));
  }

  /// Attention computes complete heads. Sequence ranks therefore divide those of a tensor rank, or
  /// have copies of KV heads.
  void check_heads() {
    const Model& model = config_.model;
    const Index ranks = config_.grid.sequence, tensor = config_.grid.tensor;
    const auto own = [&](Index heads) { return std::max<Index>(1, heads / tensor); };
    refuse_if(own(model.heads) % ranks != 0, {"grid.sequence", "model.heads"},
              fmt::format("grid.sequence must divide the {} heads of a tensor rank (model.heads = "
                          "{}), found {}",
                          own(model.heads), model.heads, ranks));
    const Index kv_heads = own(model.kv_heads);
    refuse_if(kv_heads % ranks != 0 && ranks % kv_heads != 0, {"grid.sequence", "model.kv_heads"},
              fmt::format("grid.sequence must divide the {} KV heads of a tensor rank "
                          "(model.kv_heads = {}) or be a multiple of them, found {}",
                          kv_heads, model.kv_heads, ranks));
  }

  /// If a rank has several chunks, each has gradients of its own, which no key may combine earlier.
  void check_settings() {
    const Index chunks = config_.train.sequence_chunks, ranks = config_.grid.sequence;
    const bool has_several = chunks > ranks;
    refuse_if(
        chunks > 1 && config_.run.verify_every > 0, {"run.verify_every", chunks_key_},
        fmt::format("run.verify_every compares ranks that compute whole sequences; it must be "
                    "0 with {} = {}, found {}",
                    chunks_key_, chunks, config_.run.verify_every));
    const auto needs_one = [&](bool is_broken, const std::string& key, const std::string& value) {
      refuse_if(has_several && is_broken, {key, "train.sequence_chunks", "grid.sequence"},
                fmt::format("{} = {} needs one chunk a rank, but train.sequence_chunks is {} and "
                            "grid.sequence {}",
                            key, value, chunks, ranks));
    };
    const bool splits_rows = config_.model.sequence_parallel && config_.grid.tensor > 1;
    const Index tile_rows = config_.train.tile_rows;
    refuse_if(tile_rows > 0 && splits_rows, {"train.tile_rows", "model.sequence_parallel"},
              fmt::format("train.tile_rows must be 0 with model.sequence_parallel = true, found {}",
                          tile_rows));
    refuse_if(tile_rows % config_.grid.tensor != 0, {"train.tile_rows", "grid.tensor"},
              fmt::format("train.tile_rows must be a multiple of grid.tensor = {}, found {}",
                          config_.grid.tensor, tile_rows));
    needs_one(config_.zero.accumulate == Accumulate::local, "zero.accumulate", "\"local\"");
    needs_one(config_.zero.reduction == ReductionOrder::library, "zero.reduction", "\"library\"");
    needs_one(config_.recompute.partition && config_.grid.tensor > 1, "recompute.partition",
              "true");
    needs_one(splits_rows, "model.sequence_parallel", "true");
  }

  Config& config_;
  std::string chunks_key_ =
      "train.sequence_chunks";  // the key that decides on the number of chunks
};

}  // namespace

std::vector<Violation> apply_sequence_rules(Config& config) {
  return SequenceRules(config).apply();
}

}  // namespace kzero::deck

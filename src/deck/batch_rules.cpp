#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "deck/model_rules.hpp"
#include "deck/rule_parts.hpp"
#include "deck/schema.hpp"

namespace kzero::deck {

namespace {

class BatchRules : ViolationList {
 public:
  explicit BatchRules(Config& config)
      : train_(config.train),
        grid_(config.grid),
        // Ranks that share sequences compute one micro-batch.
        ranks_(config.grid.data / config.grid.sequence) {}

  std::vector<Violation> apply() {
    for (std::size_t i = 0; i < train_.phases.size(); ++i) check_phase(i);
    if (!violations_.empty()) return std::move(violations_);
    Index common = train_.global_batch;
    for (const BatchPhase& phase : train_.phases) common = std::gcd(common, phase.global_batch);
    check_size(train_.global_batch, "train.global_batch", {});
    for (std::size_t i = 0; i < train_.phases.size(); ++i) {
      const std::string path = table_path("train.phase", static_cast<Index>(i));
      check_size(train_.phases[i].global_batch, path + ".global_batch", path);
    }
    if (train_.micro_batch == 0 && ranks_ > 0)
      train_.micro_batch = std::max<Index>(1, common / ranks_);
    return std::move(violations_);
  }

 private:
  /// Phases have at least one step each, and begin before the run ends.
  void check_phase(std::size_t number) {
    const BatchPhase& phase = train_.phases[number];
    const std::string path = table_path("train.phase", static_cast<Index>(number));
    const Index before = number == 0 ? 0 : train_.phases[number - 1].from_step;
    std::vector<std::string> keys{path + ".from_step", path};
    if (number > 0)
      keys.push_back(table_path("train.phase", static_cast<Index>(number) - 1) + ".from_step");
    refuse_if(
        phase.from_step <= before, keys,
        fmt::format("{}.from_step must be more than {}, where {} begins, found {}", path, before,
                    number == 0 ? std::string("train.global_batch")
                                : table_path("train.phase", static_cast<Index>(number) - 1),
                    phase.from_step));
    refuse_if(phase.from_step > before && phase.from_step >= train_.steps,
              {path + ".from_step", "train.steps", path},
              fmt::format("{}.from_step must be less than train.steps = {}, found {}: the run ends "
                          "before the phase begins",
                          path, train_.steps, phase.from_step));
    refuse_if(phase.global_batch == 0, {path + ".global_batch", path},
              fmt::format("{}.global_batch must be at least 1, found 0", path));
  }

  /// Checks the size of a batch, which the deck sets with `key`, in `table` of a list.
  void check_size(Index batch, const std::string& key, const std::string& table) {
    std::vector<std::string> keys{key, "train.micro_batch", "grid.data"};
    if (!table.empty()) keys.push_back(table);
    const Index micro = train_.micro_batch;
    if (micro == 0) {
      if (ranks_ == 0) return;
      refuse_if(batch % ranks_ != 0, keys,
                fmt::format("{} must be a multiple of the {} data-parallel ranks, or "
                            "train.micro_batch must be set, found {}; {}",
                            key, ranks_, batch, nearest_multiples(batch, ranks_)));
      return;
    }
    refuse_if(batch % micro != 0, keys,
              fmt::format("{} must be a multiple of train.micro_batch = {}, found {}; {}", key,
                          micro, batch, nearest_multiples(batch, micro)));
    if (ranks_ == 0 || batch % micro != 0) return;
    const Index parts = batch / micro;
    const std::string smaller =
        batch >= ranks_ ? fmt::format(", a train.micro_batch of at most {}", batch / ranks_) : "";
    const std::string together =
        grid_.sequence > 1 ? fmt::format(", which share sequences in groups of {}", grid_.sequence)
                           : "";
    refuse_if(parts < ranks_, keys,
              fmt::format("{} = {} has {} micro-batch{} of {}, too few for {} data-parallel "
                          "ranks{}; use at most {} rank{}{} or a {} of at least {}",
                          key, batch, parts, parts == 1 ? "" : "es", micro, grid_.data, together,
                          parts * grid_.sequence, parts * grid_.sequence == 1 ? "" : "s", smaller,
                          key, micro * ranks_));
  }

  Train& train_;
  const Grid& grid_;
  Index ranks_;  // that compute different micro-batches; 0: not known
};

}  // namespace

std::vector<Violation> apply_batch_rules(Config& config) { return BatchRules(config).apply(); }

}  // namespace kzero::deck

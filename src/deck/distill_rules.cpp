#include <fmt/format.h>

#include "deck/rule_parts.hpp"

namespace kzero::deck {

namespace {

class DistillRules : ViolationList {
 public:
  explicit DistillRules(const Config& config) : config_(config) {}

  std::vector<Violation> apply() {
    const Distill& distill = config_.distill;
    if (!distills(distill)) {
      check_unused();
      return std::move(violations_);
    }
    const Data& data = config_.data;
    const std::size_t sources = data.blend.empty() ? 1 : data.blend.size();
    refuse_if(distill.file.size() != sources, {"distill.file", "data.blend"},
              fmt::format("distill.file must name a file for each source of data, {}, found {}",
                          sources, distill.file.size()));
    refuse_if(distill.top > config_.model.vocab, {"distill.top", "model.vocab"},
              fmt::format("distill.top must be at most model.vocab = {}, found {}",
                          config_.model.vocab, distill.top));
    refuse_if(prefers(config_.preference), {"distill.file", "preference.loss"},
              fmt::format("distill.file needs preference.loss = \"none\", found \"{}\"",
                          name_of(config_.preference.loss)));
    refuse_if(data.end_token >= 0, {"distill.file", "data.end_token"},
              fmt::format("distill.file needs data.end_token = -1, found {}: a teacher reads whole "
                          "sequences; use data.format = \"documents\" to separate them",
                          data.end_token));
    return std::move(violations_);
  }

 private:
  void check_unused() {
    const Distill &set = config_.distill, defaults;
    const std::string needs = " has no effect without distill.file; remove it";
    refuse_if(set.weight != defaults.weight, {"distill.weight", "distill.file"},
              fmt::format("distill.weight = {}{}", set.weight, needs));
    refuse_if(set.top != defaults.top, {"distill.top", "distill.file"},
              fmt::format("distill.top = {}{}", set.top, needs));
  }

  const Config& config_;
};

}  // namespace

std::vector<Violation> apply_distill_rules(const Config& config) {
  return DistillRules(config).apply();
}

}  // namespace kzero::deck

#include "run/group_report.hpp"

#include <fmt/format.h>

namespace kzero::run {

namespace {

struct GroupSize {
  Index tensors = 0, parameters = 0;
};

std::string text_of(const GroupSize& size) {
  return fmt::format("{} parameters in {} tensor{}", size.parameters, size.tensors,
                     size.tensors == 1 ? "" : "s");
}

}  // namespace

std::vector<std::string> group_lines(const deck::Optimizer& optimizer, const param::Table& table) {
  if (optimizer.groups.empty()) return {};
  std::vector<GroupSize> sizes(optimizer.groups.size() + 1);  // the last: of no group
  for (const param::UnitSpec& unit : table) {
    for (const param::ParamSpec& parameter : unit.params) {
      GroupSize& size = parameter.group < 0 ? sizes.back() : sizes[parameter.group];
      ++size.tensors;
      size.parameters += parameter.elements();
    }
  }
  std::vector<std::string> lines;
  for (std::size_t g = 0; g < optimizer.groups.size(); ++g) {
    const deck::OptimizerGroup& group = optimizer.groups[g];
    const std::string decay =
        group.weight_decay < 0 ? std::string("unchanged") : fmt::format("{}", group.weight_decay);
    lines.push_back(fmt::format("group       \"{}\": {}, lr x {}, weight decay {}", group.match,
                                text_of(sizes[g]), group.lr_scale, decay));
  }
  lines.push_back("group       others: " + text_of(sizes.back()));
  return lines;
}

}  // namespace kzero::run

#include "train/parameter_sums.hpp"

#include <algorithm>

#include "optim/optimizer.hpp"

namespace kzero::train {

namespace {

constexpr std::size_t words_of_sum = kernels::ExactSum::limbs + 1;
static_assert(sizeof(kernels::ExactSum) == words_of_sum * sizeof(std::uint64_t),
              "an array of sums is an array of their words");

Index sums_of(const optim::Optimizer& optimizer, int pass, const param::UnitSpec& unit) {
  Index sums = 0;
  for (const param::ParamSpec& parameter : unit.params) sums += optimizer.sums(pass, parameter);
  return sums;
}

}  // namespace

ParameterSums::ParameterSums(memory::Arenas& arenas, const Blueprint& blueprint) {
  const optim::Optimizer& optimizer = *blueprint.optimizer;
  const auto category = tensor::on_host ? memory::Category::optimizer : memory::Category::offloaded;
  for (int pass = 0; pass + 1 < optimizer.passes(); ++pass) {
    std::vector<Index> counts;
    Index total = 0;
    for (const param::UnitSpec& unit : blueprint.table) {
      counts.push_back(sums_of(optimizer, pass, unit));
      total += counts.back();
    }
    auto* next = arenas.take<kernels::ExactSum>(category, total);
    Pass& found = passes_.emplace_back();
    if (arenas.measuring()) continue;
    found.all = {next, static_cast<std::size_t>(total)};
    for (const Index count : counts) {
      found.of_unit.push_back(next);
      next += count;
    }
  }
}

void ParameterSums::clear(int pass) const {
  std::ranges::fill(passes_[static_cast<std::size_t>(pass)].all, kernels::ExactSum{});
}

std::span<std::uint64_t> ParameterSums::words(int pass) const {
  const std::span<kernels::ExactSum> sums = passes_[static_cast<std::size_t>(pass)].all;
  for (kernels::ExactSum& sum : sums) sum.carry();
  return {sums.data()->word, sums.size() * words_of_sum};
}

}  // namespace kzero::train

#include "engine/parameter_sums.hpp"

#include <algorithm>

namespace kzero::engine {

namespace {

/// Returns where each unit's values begin if each parameter has count_of(parameter) of them. The
/// last entry is their total number.
template <class CountOf>
std::vector<Index> begins_of(const param::Table& table, const CountOf& count_of) {
  std::vector<Index> begins{0};
  for (const param::UnitSpec& unit : table) {
    Index count = 0;
    for (const param::ParamSpec& parameter : unit.params) count += count_of(parameter);
    begins.push_back(begins.back() + count);
  }
  return begins;
}

template <class T>
std::span<T> take(memory::Arenas& arenas, Index count) {
  if (count == 0) return {};
  const auto category = tensor::on_host ? memory::Category::optimizer : memory::Category::offloaded;
  T* values = arenas.take<T>(category, count);
  return arenas.measuring() ? std::span<T>()
                            : std::span<T>(values, static_cast<std::size_t>(count));
}

}  // namespace

ParameterSums::ParameterSums(memory::Arenas& arenas, const Blueprint& blueprint)
    : table_(blueprint.trained), optimizer_(*blueprint.optimizer) {
  for (int pass = 0; pass + 1 < optimizer_.passes(); ++pass) {
    Values<std::uint64_t>& words = passes_.emplace_back();
    words.begin = begins_of(table_, [&](const param::ParamSpec& parameter) {
      return optimizer_.sum_words(pass, parameter);
    });
    words.all = take<std::uint64_t>(arenas, words.begin.back());
  }
  reduced_.begin = begins_of(table_, [&](const param::ParamSpec& parameter) {
    return param::length_of(optimizer_.reduced_state(), parameter.shape);
  });
  reduced_.all = take<float>(arenas, reduced_.begin.back());
  std::ranges::fill(reduced_.all, 0.0F);
}

std::uint64_t* ParameterSums::of(int pass, Index unit) const {
  const Values<std::uint64_t>& words = passes_[pass];
  return words.all.data() + words.begin[unit];
}

std::span<std::uint64_t> ParameterSums::words(int pass) const { return passes_[pass].all; }

float* ParameterSums::reduced(Index unit) const {
  return reduced_.all.data() + reduced_.begin[unit];
}

void ParameterSums::update_reduced(const optim::Update& update) const {
  if (reduced_.all.empty()) return;
  const std::uint64_t* sums = of(update.pass - 1, 0);
  float* values = reduced_.all.data();
  for (const param::UnitSpec& unit : table_) {
    for (const param::ParamSpec& parameter : unit.params) {
      optimizer_.update_reduced(update, parameter, sums, values);
      sums += optimizer_.sum_words(update.pass - 1, parameter);
      values += param::length_of(optimizer_.reduced_state(), parameter.shape);
    }
  }
}

}  // namespace kzero::engine

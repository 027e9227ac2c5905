#include "engine/parameter_sums.hpp"

#include <algorithm>

#include "runtime/pinned_copy.hpp"

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

ParameterSums::ParameterSums(memory::Arenas& arenas, const Blueprint& blueprint,
                             bool updates_on_device)
    : table_(blueprint.trained), optimizer_(*blueprint.optimizer) {
  Index max_words = 0;
  for (int pass = 0; pass + 1 < optimizer_.passes(); ++pass) {
    Values<std::uint64_t>& words = passes_.emplace_back();
    words.begin = begins_of(table_, [&](const param::ParamSpec& parameter) {
      return optimizer_.sum_words(pass, parameter);
    });
    words.all = take<std::uint64_t>(arenas, words.begin.back());
    max_words = std::max(max_words, words.begin.back());
  }
  if (updates_on_device && max_words > 0)
    on_device_ = arenas.take<std::uint64_t>(memory::Category::optimizer, max_words);
  reduced_.begin = begins_of(table_, [&](const param::ParamSpec& parameter) {
    return param::length_of(optimizer_.reduced_state(), parameter.shape);
  });
  reduced_.all = take<float>(arenas, reduced_.begin.back());
  std::ranges::fill(reduced_.all, 0.0F);
}

void ParameterSums::clear(const tensor::Execution& exec, int pass) const {
  const std::span<std::uint64_t> host = words(pass);
  if (on_device_ == nullptr) {
    std::ranges::fill(host, 0);
  } else {
    Kokkos::deep_copy(exec, tensor::Vector<std::uint64_t>(on_device_, host.size()), 0);
  }
}

std::uint64_t* ParameterSums::adds(int pass, Index unit) const {
  return on_device_ == nullptr ? of(pass, unit) : on_device_ + passes_[pass].begin[unit];
}

void ParameterSums::read(const tensor::Execution& exec, int pass) const {
  if (on_device_ == nullptr) return;
  const std::span<std::uint64_t> host = words(pass);
  runtime::copy_to_host(exec, on_device_, host.data(), std::ssize(host));
  exec.fence("kzero::engine::parameter_sums_read");
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

#include "engine/router_balance.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/routing.hpp"
#include "param/flat_layout.hpp"

namespace kzero::engine {

namespace {

std::vector<float> changes_of(std::span<const std::uint64_t> choices, double rate) {
  const auto all = std::accumulate(choices.begin(), choices.end(), std::uint64_t{0});
  const auto step = static_cast<float>(rate);
  std::vector<float> changes;
  for (const std::uint64_t own : choices) {
    const std::uint64_t scaled = own * choices.size();  // as the mean may be a fraction
    changes.push_back(scaled == all ? 0 : scaled < all ? step : -step);
  }
  return changes;
}

void add(const tensor::Execution& exec, std::span<const float> values, float* to) {
  kernels::add_values(exec, values, to);
}

void add(const tensor::HostCores& /*cores*/, std::span<const float> values, float* to) {
  for (const float value : values) *to++ += value;
}

}  // namespace

RouterBalance::RouterBalance(const param::Table& units, std::span<const std::uint64_t> choices,
                             double rate) {
  changes_.resize(units.size());
  for (std::size_t u = 0; u < units.size(); ++u) {
    const auto& params = units[u].params;
    const auto bias = std::ranges::find_if(params, &param::ParamSpec::follows_choices);
    if (bias == params.end()) continue;
    const auto experts = static_cast<std::size_t>(bias->elements());
    changes_[u] = changes_of(choices.first(experts), rate);
    choices = choices.subspan(experts);
  }
}

template <class T>
void RouterBalance::apply(const optim::Place& place, Index u, const optim::Share<T>& share) const {
  if (changes_.empty() || changes_[u].empty()) return;
  for (const param::Part& part : param::parts(*share.spec, *share.layout, share.begin, share.end)) {
    if (!share.spec->params[part.param].follows_choices) continue;
    const std::span<const float> own(changes_[u].data() + part.in_param,
                                     static_cast<std::size_t>(part.count));
    float* const master = (share.state + (part.in_unit - share.begin)).master();
    std::visit([&](const auto& where) { add(where, own, master); }, place);
  }
}

#define KZERO_INSTANTIATE(T) \
  template void RouterBalance::apply<T>(const optim::Place&, Index, const optim::Share<T>&) const;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::engine

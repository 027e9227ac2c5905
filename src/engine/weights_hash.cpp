#include "engine/weights_hash.hpp"

#include <algorithm>
#include <vector>

#include "checkpoint/format/parameter_hash.hpp"
#include "grid/agreement.hpp"
#include "model/definition.hpp"
#include "param/state_array.hpp"

namespace kzero::engine {

namespace {

constexpr Index hashed_at_once = Index{1} << 20;  // elements

/// The weights of the model itself, in order.
std::vector<param::ParamSpec> base_weights(const deck::Config& config) {
  std::vector<param::ParamSpec> all;
  for (const param::UnitSpec& unit : param::base_of(model::define(config)->table({})))
    all.insert(all.end(), unit.params.begin(), unit.params.end());
  return all;
}

/// Returns a rank's summand of the hash of a parameter.
std::uint64_t hash_of_share(const grid::Group& world, const param::ParamSpec& p, Index position,
                            const InitialValues& values) {
  std::vector<float> part;
  const Index share = ceil_div(p.elements(), world.size());
  const Index end = std::min((world.rank() + 1) * share, p.elements());
  std::uint64_t hash = 0;
  for (Index at = world.rank() * share; at < end; at += hashed_at_once) {
    const checkpoint::Range range{at, std::min(hashed_at_once, end - at)};
    part.resize(static_cast<std::size_t>(range.count));
    values(p, range, part);
    hash += checkpoint::hash_of({p.name, {range}, {{param::master_weights, part}}}, position);
  }
  return hash;
}

}  // namespace

std::uint64_t weights_hash(const grid::Group& world, const deck::Config& config,
                           const InitialValues& values) {
  const std::vector<param::ParamSpec> weights = base_weights(config);
  std::vector<std::uint64_t> sum(1);
  grid::collectively(world, [&] {
    for (std::size_t i = 0; i < weights.size(); ++i)
      sum.front() += hash_of_share(world, weights[i], static_cast<Index>(i), values);
  });
  world.sum(sum);
  return sum.front();
}

}  // namespace kzero::engine

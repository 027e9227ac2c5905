#include "data/blend.hpp"

#include <algorithm>
#include <span>

#include "base/checksum.hpp"
#include "base/error.hpp"

namespace kzero::data {

Blend::Blend(std::vector<Sampler> samplers, std::vector<Index> shares)
    : samplers_(std::move(samplers)),
      order_(std::move(shares)),
      sequence_(samplers_.front().sequence()) {
  KZERO_EXPECT(samplers_.size() == order_.shares().size());
}

Index Blend::windows() const {
  Index sum = 0;
  for (const Sampler& sampler : samplers_) sum += sampler.windows();
  return sum;
}

double Blend::share(Index i) const {
  return static_cast<double>(order_.shares()[i]) / static_cast<double>(order_.period());
}

double Blend::epochs(Index i, Index samples) const {
  return static_cast<double>(order_.count(i, samples)) / static_cast<double>(source(i).windows());
}

bool Blend::repeats(Index samples) const {
  for (Index i = 0; i < source_count(); ++i) {
    if (order_.count(i, samples) > source(i).windows()) return true;
  }
  return false;
}

void Blend::batch(Index first_sample, Index count, Token* inputs, Token* targets) const {
  for (Index i = 0; i < count; ++i) {
    const BlendOrder::Place place = order_(first_sample + i);
    source(place.source).batch(place.sample, 1, inputs + i * sequence_, targets + i * sequence_);
  }
}

std::uint64_t Blend::digest() const {
  if (samplers_.size() == 1) return samplers_.front().digest();
  std::vector<std::uint64_t> parts;
  for (Index i = 0; i < source_count(); ++i) {
    parts.push_back(source(i).digest());
    parts.push_back(static_cast<std::uint64_t>(order_.shares()[i]));
  }
  return checksum(std::as_bytes(std::span(parts)));
}

}  // namespace kzero::data

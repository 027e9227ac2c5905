#include "data/blend.hpp"

#include <algorithm>
#include <span>

#include "base/checksum.hpp"
#include "base/error.hpp"

namespace kzero::data {

Blend::Blend(Sources sources, std::vector<Index> shares, const Goldfish& goldfish)
    : sources_(std::move(sources)),
      order_(std::move(shares)),
      sequence_(sources_.front()->sequence()),
      goldfish_(goldfish) {
  KZERO_EXPECT(sources_.size() == order_.shares().size());
  if (!goldfish_.is_on()) return;
  const auto size = static_cast<std::size_t>(sequence_);
  scratch_.inputs.resize(size), scratch_.targets.resize(size);
  if (has_documents()) scratch_.begin.resize(size), scratch_.end.resize(size);
}

Index Blend::windows() const {
  Index sum = 0;
  for (const auto& source : sources_) sum += source->windows();
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

/// Reads a sample, and leaves out targets. Returns the number of those that are left; without
/// goldfish, 0.
Index Blend::read(Index sample, Token* inputs, Token* targets) const {
  const BlendOrder::Place place = order_(sample);
  const EpochSource& from = source(place.source);
  from.batch(place.sample, 1, inputs, targets);
  if (!goldfish_.is_on()) return 0;
  if (has_documents())
    from.documents(place.sample, 1, inputs, scratch_.begin.data(), scratch_.end.data());
  const auto size = static_cast<std::size_t>(sequence_);
  return drop_targets(goldfish_, {inputs, size}, scratch_.begin, {targets, size});
}

void Blend::batch(Index first_sample, Index count, Token* inputs, Token* targets) const {
  for (Index i = 0; i < count; ++i)
    read(first_sample + i, inputs + i * sequence_, targets + i * sequence_);
}

void Blend::documents(Index first_sample, Index count, const Token* inputs, std::int32_t* begin,
                      std::int32_t* end) const {
  for (Index i = 0; i < count; ++i) {
    const BlendOrder::Place place = order_(first_sample + i);
    const Index at = i * sequence_;
    source(place.source).documents(place.sample, 1, inputs + at, begin + at, end + at);
  }
}

std::optional<Index> Blend::targets(Index first_sample, Index count) const {
  Index sum = 0;
  for (Index i = 0; i < count; ++i) {
    if (goldfish_.is_on()) {
      sum += read(first_sample + i, scratch_.inputs.data(), scratch_.targets.data());
      continue;
    }
    const BlendOrder::Place place = order_(first_sample + i);
    const std::optional<Index> targets = source(place.source).targets(place.sample, 1);
    if (!targets) return std::nullopt;  // and of no sample, as sources have one format
    sum += *targets;
  }
  return sum;
}

bool Blend::has_weights() const {
  return std::ranges::any_of(sources_, [](const auto& source) { return source->has_weights(); });
}

void Blend::weights(Index first_sample, Index count, float* weights) const {
  for (Index i = 0; i < count; ++i, weights += sequence_) {
    const BlendOrder::Place place = order_(first_sample + i);
    if (source(place.source).has_weights()) {
      source(place.source).weights(place.sample, 1, weights);
    } else {
      std::fill_n(weights, sequence_, 1.0F);
    }
  }
}

std::optional<Index> Blend::pairs(Index first_sample, Index count, Pair* pairs) const {
  Index sum = 0;
  for (Index i = 0; i < count; ++i) {
    const BlendOrder::Place place = order_(first_sample + i);
    Pair* const next = pairs == nullptr ? nullptr : pairs + sum;
    const std::optional<Index> here = source(place.source).pairs(place.sample, 1, next);
    if (!here) return std::nullopt;
    for (Index k = 0; k < *here && next != nullptr; ++k) {
      for (Index* position : {&next[k].chosen, &next[k].rejected, &next[k].end})
        *position += i * sequence_;
    }
    sum += *here;
  }
  return sum;
}

void Blend::teacher(Index first_sample, Index count, Index top, Token* tokens, float* ln_p) const {
  for (Index i = 0; i < count; ++i) {
    const BlendOrder::Place place = order_(first_sample + i);
    const Index at = i * sequence_ * top;
    source(place.source).teacher(place.sample, 1, top, tokens + at, ln_p + at);
  }
}

std::uint64_t Blend::digest() const {
  if (sources_.size() == 1 && !goldfish_.is_on()) return source(0).digest();
  std::vector<std::uint64_t> parts;
  if (goldfish_.is_on())
    parts = {static_cast<std::uint64_t>(goldfish_.k), static_cast<std::uint64_t>(goldfish_.h)};
  for (Index i = 0; i < source_count(); ++i) {
    parts.push_back(source(i).digest());
    parts.push_back(static_cast<std::uint64_t>(order_.shares()[i]));
  }
  return checksum(std::as_bytes(std::span(parts)));
}

}  // namespace kzero::data

#include "data/sampler.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "data/permutation.hpp"

namespace kzero::data {

Index count_windows(const TokenStream& stream, Index sequence) {
  return std::max<Index>(0, stream.size() - 1) / sequence;
}

Sampler::Sampler(std::shared_ptr<const TokenStream> stream, Index sequence, Index first_window,
                 Index windows, deck::DataOrder order, std::uint64_t seed)
    : stream_(std::move(stream)),
      sequence_(sequence),
      first_window_(first_window),
      windows_(windows),
      order_(order),
      seed_(seed) {
  KZERO_EXPECT(windows > 0 && first_window + windows <= count_windows(*stream_, sequence));
}

Index Sampler::window(Index sample) const {
  const Index position = sample % windows_;
  if (order_ == deck::DataOrder::sequential) return first_window_ + position;
  const Permutation permutation(windows_, seed_, static_cast<std::uint64_t>(epoch(sample)));
  return first_window_ + permutation(position);
}

void Sampler::batch(Index first_sample, Index count, Token* inputs, Token* targets) const {
  for (Index i = 0; i < count; ++i) {
    const Index begin = window(first_sample + i) * sequence_;
    stream_->read(begin, sequence_, inputs + i * sequence_);
    stream_->read(begin + 1, sequence_, targets + i * sequence_);
  }
}

std::uint64_t Sampler::digest() const {
  const bool shuffled = order_ == deck::DataOrder::shuffled;
  const std::array<std::uint64_t, 5> parts{
      static_cast<std::uint64_t>(sequence_), static_cast<std::uint64_t>(first_window_),
      static_cast<std::uint64_t>(windows_), shuffled ? 1U : 0U, shuffled ? seed_ : 0};
  return checksum(std::as_bytes(std::span(parts)));
}

}  // namespace kzero::data

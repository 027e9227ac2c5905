#include "data/sampler.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "data/permutation.hpp"

namespace kzero::data {

Index count_windows(const TokenStream& stream, Index sequence) {
  return std::max<Index>(0, stream.size() - 1) / sequence;
}

Sampler::Sampler(std::shared_ptr<const TokenStream> stream, Index sequence, Index first_window,
                 Index windows, deck::DataOrder order, std::uint64_t seed,
                 std::optional<Token> end_token, std::shared_ptr<const TeacherFile> teacher)
    : stream_(std::move(stream)),
      sequence_(sequence),
      first_window_(first_window),
      windows_(windows),
      order_(order),
      seed_(seed),
      end_token_(end_token),
      teacher_(std::move(teacher)) {
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

void Sampler::documents(Index /*first_sample*/, Index count, const Token* inputs,
                        std::int32_t* begin, std::int32_t* end) const {
  for (Index i = 0; i < count; ++i, inputs += sequence_, begin += sequence_, end += sequence_) {
    for (Index first = 0, after = 0; first < sequence_; first = after) {
      const Token* const last = std::find(inputs + first, inputs + sequence_, *end_token_);
      after = std::min(last - inputs + 1, sequence_);
      std::fill(begin + first, begin + after, static_cast<std::int32_t>(first));
      std::fill(end + first, end + after, static_cast<std::int32_t>(after));
    }
  }
}

void Sampler::teacher(Index first_sample, Index count, Index top, Token* tokens,
                      float* ln_p) const {
  for (Index i = 0; i < count; ++i) {
    const Index at = i * sequence_ * top;
    teacher_->read(window(first_sample + i) * sequence_, sequence_, tokens + at, ln_p + at);
  }
}

std::uint64_t Sampler::digest() const {
  const bool shuffled = order_ == deck::DataOrder::shuffled;
  std::vector<std::uint64_t> parts{
      static_cast<std::uint64_t>(sequence_), static_cast<std::uint64_t>(first_window_),
      static_cast<std::uint64_t>(windows_), shuffled ? 1U : 0U, shuffled ? seed_ : 0};
  if (end_token_) parts.push_back(static_cast<std::uint64_t>(*end_token_));
  return checksum(std::as_bytes(std::span(parts)));
}

}  // namespace kzero::data

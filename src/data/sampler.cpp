#include "data/sampler.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "data/permutation.hpp"

namespace kzero::data {

namespace {

Index require_windows(const TokenStream& stream, Index sequence, const char* key) {
  const Index windows = count_windows(stream, sequence);
  KZERO_REQUIRE(windows > 0, ExitCode::files,
                "{}: the files hold {} tokens, but one sample of model.sequence = {} needs {}; "
                "give more data or a shorter sequence",
                key, stream.size(), sequence, sequence + 1);
  return windows;
}

/// The number of windows at the end that validation takes: at least one of each kind remains.
Index validation_windows(Index windows, double fraction) {
  KZERO_REQUIRE(
      windows >= 2, ExitCode::files,
      "data.validation_fraction = {}: the files hold only {} sample of model.sequence + 1 tokens, "
      "which cannot be divided; give more data or set validation_files",
      fraction, windows);
  const auto share = static_cast<Index>(std::llround(static_cast<double>(windows) * fraction));
  return std::clamp<Index>(share, 1, windows - 1);
}

}  // namespace

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

std::uint64_t Dataset::training_digest() const {
  const std::array<std::uint64_t, 2> parts{training_stream->digest(), training->digest()};
  return checksum(std::as_bytes(std::span(parts)));
}

void Dataset::check_tokens(Index part, Index parts, ProblemList& problems) const {
  for (const TokenStream* stream : {training_stream.get(), validation_stream.get()}) {
    if (stream != nullptr) stream->check_tokens(part, parts, problems);
  }
}

Dataset open_dataset(const deck::Data& deck, Index sequence, Index vocab, std::uint64_t seed,
                     ProblemList& problems) {
  Dataset result;
  const auto open = [&](const std::vector<std::string>& patterns) {
    return std::make_shared<TokenStream>(patterns, deck.format, vocab, problems);
  };
  result.training_stream = open(deck.files);
  if (!deck.validation_files.empty()) result.validation_stream = open(deck.validation_files);
  if (!problems.empty()) return result;  // the tokens of bad files cannot be counted

  const auto validate_on = [&](const std::shared_ptr<const TokenStream>& stream, Index first,
                               Index count) {
    result.validation = std::make_unique<Sampler>(stream, sequence, first, count,
                                                  deck::DataOrder::sequential, seed);
  };
  Index training = 0;
  problems.collect("data.files", [&] {
    training = require_windows(*result.training_stream, sequence, "data.files");
    if (deck.validation_fraction <= 0 || result.validation_stream) return;
    const Index count = validation_windows(training, deck.validation_fraction);
    training -= count;
    validate_on(result.training_stream, training, count);
  });
  problems.collect("data.validation_files", [&] {
    if (!result.validation_stream) return;
    validate_on(result.validation_stream, 0,
                require_windows(*result.validation_stream, sequence, "data.validation_files"));
  });
  if (problems.empty()) {
    result.training =
        std::make_unique<Sampler>(result.training_stream, sequence, 0, training, deck.order, seed);
  }
  return result;
}

Dataset open_dataset(const deck::Data& deck, Index sequence, Index vocab, std::uint64_t seed) {
  ProblemList problems;
  Dataset dataset = open_dataset(deck, sequence, vocab, seed, problems);
  problems.throw_if_any(ExitCode::files);
  return dataset;
}

}  // namespace kzero::data

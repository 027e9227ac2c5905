#include "data/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/checksum.hpp"
#include "base/error.hpp"

namespace kzero::data {

namespace {

Index require_windows(const TokenStream& stream, Index sequence, const std::string& key) {
  const Index windows = count_windows(stream, sequence);
  KZERO_REQUIRE(windows > 0, ExitCode::files,
                "{}: the files hold {} tokens, but one sample of model.sequence = {} needs {}; "
                "give more data or a shorter sequence",
                key, stream.size(), sequence, sequence + 1);
  return windows;
}

/// The number of windows at the end of `files` that are used for validation: at least one window
/// remains for training and one for validation.
Index validation_windows(Index windows, double fraction, const std::string& files) {
  KZERO_REQUIRE(
      windows >= 2, ExitCode::files,
      "data.validation_fraction = {}: {} hold only {} sample of model.sequence + 1 tokens, "
      "which cannot be divided; give more data or set validation_files",
      fraction, files, windows);
  const auto share = static_cast<Index>(std::llround(static_cast<double>(windows) * fraction));
  return std::clamp<Index>(share, 1, windows - 1);
}

/// One source as described by the deck.
struct SourceFiles {
  std::string key;  // the key that names them
  std::string name;
  std::vector<std::string> files;
  double weight = 1;
};

std::vector<SourceFiles> sources_of(const deck::Data& deck) {
  if (deck.blend.empty()) return {{"data.files", "", deck.files}};
  std::vector<SourceFiles> sources;
  for (std::size_t i = 0; i < deck.blend.size(); ++i) {
    const deck::BlendSource& source = deck.blend[i];
    sources.push_back(
        {fmt::format("data.blend[{}].files", i), source.name, source.files, source.weight});
  }
  return sources;
}

/// Divides streams into windows for training and for validation.
class Division {
 public:
  Division(const deck::Data& deck, Index sequence, std::uint64_t seed)
      : deck_(deck), sequence_(sequence), seed_(seed) {}

  void add(const SourceFiles& source, const std::shared_ptr<const TokenStream>& stream) {
    Index training = require_windows(*stream, sequence_, source.key);
    if (deck_.validation_fraction > 0 && deck_.validation_files.empty()) {
      const std::string files = deck_.blend.empty() ? "the files" : source.key;
      const Index count = validation_windows(training, deck_.validation_fraction, files);
      training -= count;
      validation_.emplace_back(stream, sequence_, training, count, deck::DataOrder::sequential,
                               seed_);
    }
    training_.emplace_back(stream, sequence_, 0, training, deck_.order, seed_);
    weights_.push_back(source.weight);
  }

  void finish(Dataset& dataset) {
    const std::vector<Index> shares = shares_of(weights_);
    dataset.training = std::make_unique<Blend>(std::move(training_), shares);
    if (!validation_.empty())
      dataset.validation = std::make_unique<Blend>(std::move(validation_), shares);
  }

 private:
  const deck::Data& deck_;
  Index sequence_;
  std::uint64_t seed_;
  std::vector<Sampler> training_, validation_;
  std::vector<double> weights_;
};

/// The micro-batches that an evaluation reads. If the deck gives no number of batches: all full
/// ones that there are.
Index micro_batches_of(const deck::Evaluation& table, const std::string& key,
                       const deck::Train& train, Index windows) {
  const Index micro = std::max<Index>(1, train.micro_batch);  // not known without the ranks
  if (table.batches > 0) return table.batches * (train.global_batch / micro);
  KZERO_REQUIRE(windows >= micro, ExitCode::files,
                "{}: the files hold {} sequence{} of model.sequence + 1 tokens, fewer than "
                "train.micro_batch = {}; give more data",
                key, windows, windows == 1 ? "" : "s", micro);
  return windows / micro;
}

void open_evaluation(const deck::Evaluation& table, const std::string& key,
                     const deck::Config& config, ProblemList& problems, Dataset& dataset) {
  const deck::Model& model = config.model;
  const auto stream = std::make_shared<TokenStream>(
      table.files, TokenEncoding(table.format, table.token_bytes), model.vocab, problems);
  if (!problems.empty()) return;  // the tokens of bad files cannot be counted
  problems.collect(key, [&] {
    const Index windows = require_windows(*stream, model.sequence, key);
    dataset.evaluations.push_back(
        {table.name, table.every, micro_batches_of(table, key, config.train, windows), stream,
         std::make_unique<Sampler>(stream, model.sequence, 0, windows, deck::DataOrder::sequential,
                                   config.train.seed)});
  });
}

}  // namespace

std::uint64_t Dataset::training_digest() const {
  std::vector<std::uint64_t> parts;
  for (const TrainingSource& source : sources) parts.push_back(source.stream->digest());
  parts.push_back(training->digest());
  return checksum(std::as_bytes(std::span(parts)));
}

void Dataset::check_tokens(Index part, Index parts, ProblemList& problems) const {
  for (const TrainingSource& source : sources) source.stream->check_tokens(part, parts, problems);
  if (validation_stream) validation_stream->check_tokens(part, parts, problems);
  for (const EvaluationSet& set : evaluations) set.stream->check_tokens(part, parts, problems);
}

Dataset open_dataset(const deck::Data& deck, Index sequence, Index vocab, std::uint64_t seed,
                     ProblemList& problems) {
  Dataset result;
  const auto open = [&](const std::vector<std::string>& patterns) {
    return std::make_shared<TokenStream>(patterns, TokenEncoding(deck.format, deck.token_bytes),
                                         vocab, problems);
  };
  const std::vector<SourceFiles> sources = sources_of(deck);
  for (const SourceFiles& source : sources)
    result.sources.push_back({source.name, open(source.files)});
  if (!deck.validation_files.empty()) result.validation_stream = open(deck.validation_files);
  if (!problems.empty()) return result;  // the tokens of bad files cannot be counted

  Division division(deck, sequence, seed);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    problems.collect(sources[i].key, [&] { division.add(sources[i], result.sources[i].stream); });
  }
  Index validation = 0;
  problems.collect("data.validation_files", [&] {
    if (result.validation_stream)
      validation = require_windows(*result.validation_stream, sequence, "data.validation_files");
  });
  if (!problems.empty()) return result;
  division.finish(result);
  if (result.validation_stream) {
    std::vector<Sampler> samples{
        {result.validation_stream, sequence, 0, validation, deck::DataOrder::sequential, seed}};
    result.validation = std::make_unique<Blend>(std::move(samples), std::vector<Index>{1});
  }
  return result;
}

Dataset open_dataset(const deck::Data& deck, Index sequence, Index vocab, std::uint64_t seed) {
  ProblemList problems;
  Dataset dataset = open_dataset(deck, sequence, vocab, seed, problems);
  problems.throw_if_any(ExitCode::files);
  return dataset;
}

Dataset open_dataset(const deck::Config& config, ProblemList& problems) {
  Dataset dataset = open_dataset(config.data, config.model.sequence, config.model.vocab,
                                 config.train.seed, problems);
  for (std::size_t i = 0; i < config.evaluate.size(); ++i) {
    open_evaluation(config.evaluate[i], fmt::format("evaluate[{}].files", i), config, problems,
                    dataset);
  }
  return dataset;
}

}  // namespace kzero::data

#include "data/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "data/source_files.hpp"

namespace kzero::data {

namespace {

/// The number of windows or documents at the end of a source that are used for validation: at least
/// one remains for training and one for validation.
Index validation_parts(const SourceFiles& files, double fraction, const std::string& name) {
  const Index parts = files.parts();
  KZERO_REQUIRE(parts >= 2, ExitCode::files,
                "data.validation_fraction = {}: {} hold only {} {}, "
                "which cannot be divided; give more data or set validation_files",
                fraction, name, parts,
                files.has_pairs()            ? "pair"
                : files.has_document_files() ? "document"
                                             : "sample of model.sequence + 1 tokens");
  const auto share = static_cast<Index>(std::llround(static_cast<double>(parts) * fraction));
  return std::clamp<Index>(share, 1, parts - 1);
}

/// One source as described by the deck.
struct SourceTable {
  std::string key;  // the key that names them
  std::string name;
  std::vector<std::string> files;
  double weight = 1;
};

std::vector<SourceTable> sources_of(const deck::Data& deck) {
  if (deck.blend.empty()) return {{"data.files", "", deck.files}};
  std::vector<SourceTable> sources;
  for (std::size_t i = 0; i < deck.blend.size(); ++i) {
    const deck::BlendSource& source = deck.blend[i];
    sources.push_back(
        {fmt::format("data.blend[{}].files", i), source.name, source.files, source.weight});
  }
  return sources;
}

/// Divides sources into parts for training and for validation.
class Division {
 public:
  Division(const deck::Data& deck, std::uint64_t seed) : deck_(deck), seed_(seed) {}

  void add(const SourceTable& table, const SourceFiles& source) {
    source.require_samples(table.key);
    Index training = source.parts();
    if (deck_.validation_fraction > 0 && deck_.validation_files.empty()) {
      const std::string name = deck_.blend.empty() ? "the files" : table.key;
      const Index count = validation_parts(source, deck_.validation_fraction, name);
      training -= count;
      validation_.push_back(source.samples(training, count, deck::DataOrder::sequential, seed_));
    }
    training_.push_back(source.samples(0, training, deck_.order, seed_, source.teacher()));
    KZERO_REQUIRE(training_.back()->targets(0, training_.back()->windows()).value_or(1) > 0,
                  ExitCode::files,
                  "{}: without the {} documents for validation, no document has a target; set a "
                  "smaller data.validation_fraction",
                  table.key, source.parts() - training);
    weights_.push_back(table.weight);
  }

  void finish(Dataset& dataset) {
    const std::vector<Index> shares = shares_of(weights_);
    dataset.training = std::make_unique<Blend>(std::move(training_), shares,
                                               Goldfish{deck_.goldfish_k, deck_.goldfish_h});
    if (!validation_.empty())
      dataset.validation = std::make_unique<Blend>(std::move(validation_), shares);
  }

 private:
  const deck::Data& deck_;
  std::uint64_t seed_;
  Blend::Sources training_, validation_;
  std::vector<double> weights_;
};

/// The micro-batches that an evaluation reads. If the deck gives no number of batches: all full
/// ones that there are.
Index micro_batches_of(const deck::Evaluation& table, const std::string& key,
                       const deck::Train& train, const EpochSource& samples) {
  const Index micro = std::max<Index>(1, train.micro_batch);  // not known without the ranks
  if (table.batches > 0) return table.batches * (train.global_batch / micro);
  const Index windows = samples.windows();
  KZERO_REQUIRE(windows >= micro, ExitCode::files,
                "{}: the files hold {} sequence{} of {}, fewer than "
                "train.micro_batch = {}; give more data",
                key, windows, windows == 1 ? "" : "s",
                samples.targets(0, 1) ? "documents" : "model.sequence + 1 tokens", micro);
  return windows / micro;
}

/// An evaluation's mean loss is over the targets that it reads, so it needs one.
void require_targets(const std::string& key, const BatchSource& samples, Index count) {
  KZERO_REQUIRE(samples.targets(0, count).value_or(1) > 0, ExitCode::files,
                "{}: the first {} sequences, which an evaluation reads, have no target; give other "
                "data or more batches",
                key, count);
}

void open_evaluation(const deck::Evaluation& table, const std::string& key,
                     const deck::Config& config, ProblemList& problems, Dataset& dataset) {
  const deck::Model& model = config.model;
  const SourceFiles source(table.files, TokenEncoding(table.format, table.token_bytes),
                           model.sequence, model.vocab, config.data.end_token, problems);
  if (!problems.empty()) return;  // the tokens of bad files cannot be counted
  problems.collect(key, [&] {
    source.require_samples(key);
    auto samples =
        source.samples(0, source.parts(), deck::DataOrder::sequential, config.train.seed);
    const Index micro_batches = micro_batches_of(table, key, config.train, *samples);
    require_targets(key, *samples, micro_batches * std::max<Index>(1, config.train.micro_batch));
    dataset.evaluations.push_back(
        {table.name, table.every, micro_batches, source.files(), std::move(samples)});
  });
}

/// Opens the teachers' files of all sources. The rules of the deck have compared their numbers.
void open_teachers(const deck::Distill& distill, std::vector<SourceFiles>& sources,
                   ProblemList& problems, Dataset& dataset) {
  for (std::size_t i = 0; i < distill.file.size() && i < sources.size(); ++i) {
    problems.collect("distill.file", [&] {
      sources[i].open_teacher(distill.file[i], distill.top);
      dataset.sources[i].teacher = sources[i].teacher();
    });
  }
}

}  // namespace

std::uint64_t Dataset::training_digest() const {
  std::vector<std::uint64_t> parts;
  for (const TrainingSource& source : sources) {
    parts.push_back(source.files->digest());
    if (source.teacher) parts.push_back(source.teacher->digest());
  }
  parts.push_back(training->digest());
  return checksum(std::as_bytes(std::span(parts)));
}

void Dataset::check_tokens(Index part, Index parts, ProblemList& problems) const {
  for (const TrainingSource& source : sources) source.files->check_tokens(part, parts, problems);
  if (validation_files) validation_files->check_tokens(part, parts, problems);
  for (const EvaluationSet& set : evaluations) set.files->check_tokens(part, parts, problems);
}

Dataset open_dataset(const deck::Data& deck, Index sequence, Index vocab, std::uint64_t seed,
                     ProblemList& problems, const std::string& reference,
                     const deck::Distill& distill) {
  Dataset result;
  const auto open = [&](const std::vector<std::string>& patterns) {
    return SourceFiles(patterns, TokenEncoding(deck.format, deck.token_bytes), sequence, vocab,
                       deck.end_token, problems);
  };
  const std::vector<SourceTable> tables = sources_of(deck);
  std::vector<SourceFiles> sources;
  for (const SourceTable& table : tables) {
    sources.push_back(open(table.files));
    result.sources.push_back({table.name, sources.back().files()});
  }
  std::optional<SourceFiles> validation;
  if (!deck.validation_files.empty()) {
    validation = open(deck.validation_files);
    result.validation_files = validation->files();
  }
  if (!problems.empty()) return result;  // the tokens of bad files cannot be counted
  if (!reference.empty()) {
    problems.collect("preference.reference",
                     [&] { result.reference_model = sources.front().read_reference(reference); });
    if (!problems.empty()) return result;
  }

  open_teachers(distill, sources, problems, result);
  if (!problems.empty()) return result;
  Division division(deck, seed);
  for (std::size_t i = 0; i < tables.size(); ++i)
    problems.collect(tables[i].key, [&] { division.add(tables[i], sources[i]); });
  problems.collect("data.validation_files", [&] {
    if (validation) validation->require_samples("data.validation_files");
  });
  if (!problems.empty()) return result;
  division.finish(result);
  if (validation) {
    Blend::Sources samples;
    samples.push_back(
        validation->samples(0, validation->parts(), deck::DataOrder::sequential, seed));
    result.validation = std::make_unique<Blend>(std::move(samples), std::vector<Index>{1});
  }
  return result;
}

Dataset open_dataset(const deck::Data& deck, Index sequence, Index vocab, std::uint64_t seed,
                     const std::string& reference, const deck::Distill& distill) {
  ProblemList problems;
  Dataset dataset = open_dataset(deck, sequence, vocab, seed, problems, reference, distill);
  problems.throw_if_any(ExitCode::files);
  return dataset;
}

Dataset open_dataset(const deck::Config& config, ProblemList& problems) {
  Dataset dataset =
      open_dataset(config.data, config.model.sequence, config.model.vocab, config.train.seed,
                   problems, config.preference.reference, config.distill);
  if (dataset.training && dataset.training->has_weights()) {
    problems.collect("train.z_loss", [&] {
      KZERO_REQUIRE(config.train.z_loss == 0, ExitCode::usage,
                    "train.z_loss = {}, but it must be 0 with documents that have weights: a "
                    "weight below 0 would drive the logits apart",
                    config.train.z_loss);
    });
  }
  if (dataset.validation && config.train.validate_every > 0) {
    problems.collect("validation", [&] {
      require_targets("validation", *dataset.validation,
                      config.train.validation_batches * config.train.global_batch);
    });
  }
  for (std::size_t i = 0; i < config.evaluate.size(); ++i) {
    open_evaluation(config.evaluate[i], fmt::format("evaluate[{}].files", i), config, problems,
                    dataset);
  }
  return dataset;
}

}  // namespace kzero::data

#include "run/start_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "metrics/progress.hpp"

namespace kzero::run {

namespace {

std::string validation_warning(const deck::Config& config, const data::Blend& validation) {
  const deck::Train& train = config.train;
  const Index read = train.validation_batches * train.global_batch, there = validation.windows();
  if (train.validate_every == 0) {
    if (config.data.validation_fraction == 0) return "";
    return fmt::format(
        "warning     data.validation_fraction = {} keeps {} sequences from training, but "
        "train.validate_every = 0 never validates on them",
        config.data.validation_fraction, there);
  }
  if (!validation.repeats(read)) return "";
  if (validation.source_count() > 1) {
    return fmt::format(
        "warning     validation repeats itself: of train.validation_batches * train.global_batch = "
        "{} sequences some source of the blend has too few of its own; fewer batches avoid it",
        read);
  }
  return fmt::format(
      "warning     validation repeats itself: train.validation_batches * train.global_batch = "
      "{} sequences, but there are {}; {}",
      read, there,
      there < train.global_batch ? std::string("more validation data avoids it")
                                 : fmt::format("train.validation_batches = {} reads each at most "
                                               "once",
                                               there / train.global_batch));
}

/// Returns the number of sequences that one evaluation reads.
Index sequences_of(const data::EvaluationSet& set, const deck::Config& config) {
  return set.micro_batches * std::max<Index>(1, config.train.micro_batch);
}

/// Adds up how full the sequences of all sources are, if they are packed.
std::optional<metrics::PackingSummary> packing_of(const data::Blend& training) {
  if (!training.targets(0, 1)) return std::nullopt;
  metrics::PackingSummary sum;
  for (Index i = 0; i < training.source_count(); ++i) {
    const data::Fullness part = training.source(i).fullness();
    sum.documents += part.documents;
    sum.positions += part.positions;
    sum.tokens += part.tokens;
    sum.targets += part.targets;
    const double least = part.least_weight, largest = part.largest_weight;
    sum.least_weight = i == 0 ? least : std::min(sum.least_weight, least);
    sum.largest_weight = i == 0 ? largest : std::max(sum.largest_weight, largest);
  }
  return sum;
}

}  // namespace

metrics::DataSummary summary_of(const deck::Config& config, const data::Dataset& dataset,
                                Index samples) {
  const data::Blend& training = *dataset.training;
  metrics::DataSummary summary{
      .sequences = training.windows(),
      .epochs = static_cast<double>(samples) / static_cast<double>(training.windows()),
      .validation_sequences = dataset.validation ? dataset.validation->windows() : 0,
      .packing = packing_of(training)};
  for (Index i = 0; i < training.source_count(); ++i) {
    const data::TrainingSource& source = dataset.sources[i];
    summary.files += source.files->file_count();
    summary.tokens += source.files->size();
    if (source.name.empty()) continue;  // no blend
    summary.sources.push_back({.name = source.name,
                               .share = training.share(i),
                               .files = source.files->file_count(),
                               .tokens = source.files->size(),
                               .sequences = training.source(i).windows(),
                               .epochs = training.epochs(i, samples)});
  }
  for (const data::EvaluationSet& set : dataset.evaluations) {
    summary.evaluations.push_back({.name = set.name,
                                   .files = set.files->file_count(),
                                   .tokens = set.files->size(),
                                   .sequences = sequences_of(set, config)});
  }
  return summary;
}

std::vector<std::string> data_warnings(const deck::Config& config, const data::Dataset& dataset) {
  std::vector<std::string> lines;
  if (dataset.validation) {
    std::string line = validation_warning(config, *dataset.validation);
    if (!line.empty()) lines.push_back(std::move(line));
  }
  for (const data::EvaluationSet& set : dataset.evaluations) {
    const Index read = sequences_of(set, config), there = set.samples->windows();
    if (read > there) {
      lines.push_back(fmt::format(
          "warning     evaluation {} repeats itself: it reads {} sequences, but there are {}; "
          "evaluate.batches = 0 reads each at most once",
          set.name, read, there));
    }
  }
  return lines;
}

namespace {

struct GroupSize {
  Index tensors = 0, parameters = 0;
};

std::string text_of(const GroupSize& size) {
  return fmt::format("{} parameters in {} tensor{}", size.parameters, size.tensors,
                     size.tensors == 1 ? "" : "s");
}

}  // namespace

std::vector<std::string> group_lines(const deck::Optimizer& optimizer, const param::Table& table) {
  if (optimizer.groups.empty()) return {};
  std::vector<GroupSize> sizes(optimizer.groups.size() + 1);  // the last: of no group
  for (const param::UnitSpec& unit : table) {
    for (const param::ParamSpec& parameter : unit.params) {
      GroupSize& size = parameter.group < 0 ? sizes.back() : sizes[parameter.group];
      ++size.tensors;
      size.parameters += parameter.elements();
    }
  }
  std::vector<std::string> lines;
  for (std::size_t g = 0; g < optimizer.groups.size(); ++g) {
    const deck::OptimizerGroup& group = optimizer.groups[g];
    const std::string decay =
        group.weight_decay < 0 ? std::string("unchanged") : fmt::format("{}", group.weight_decay);
    lines.push_back(fmt::format("group       \"{}\": {}, lr x {}, weight decay {}", group.match,
                                text_of(sizes[g]), group.lr_scale, decay));
  }
  lines.push_back("group       others: " + text_of(sizes.back()));
  return lines;
}

std::string base_width_line(const deck::Config& config, const param::Table& table) {
  const deck::Model& model = config.model;
  if (model.base_width == 0) return "";
  double rate = 1;
  for (const param::UnitSpec& unit : table) {
    for (const param::ParamSpec& parameter : unit.params)
      if (parameter.is_matrix()) rate = parameter.lr_scale;
  }
  return fmt::format(
      "base width  model.hidden = {} is {:.4g} times model.base_width: learning rates of hidden "
      "matrices x {:.4g}, scores x {:.4g}, logits / {:.4g}",
      model.hidden, static_cast<double>(model.hidden) / static_cast<double>(model.base_width), rate,
      model.attention_scale, model.logit_divisor);
}

std::string adapters_note(const engine::Blueprint& blueprint) {
  const auto count = [](const param::Table& table) {
    return metrics::format_count(static_cast<double>(param::elements_of(table)));
  };
  return fmt::format("adapters    {} of {} parameters train", count(blueprint.trained),
                     count(blueprint.table));
}

}  // namespace kzero::run

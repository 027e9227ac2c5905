#include "train/data_report.hpp"

#include <fmt/format.h>

namespace kzero::train {

metrics::DataSummary summary_of(const deck::Config& config, const data::Dataset& dataset) {
  const Index sequences = dataset.training->windows();
  return {.files = dataset.training_stream->file_count(),
          .tokens = dataset.training_stream->size(),
          .sequences = sequences,
          .epochs = static_cast<double>(config.train.steps * config.train.global_batch) /
                    static_cast<double>(sequences),
          .validation_sequences = dataset.validation ? dataset.validation->windows() : 0};
}

std::vector<std::string> data_warnings(const deck::Config& config, const data::Dataset& dataset) {
  std::vector<std::string> lines;
  if (!dataset.validation) return lines;
  const deck::Train& train = config.train;
  const Index read = train.validation_batches * train.global_batch,
              there = dataset.validation->windows();
  if (train.validate_every == 0) {
    if (config.data.validation_fraction > 0)
      lines.push_back(fmt::format(
          "warning     data.validation_fraction = {} keeps {} sequences from training, but "
          "train.validate_every = 0 never validates on them",
          config.data.validation_fraction, there));
  } else if (read > there) {
    lines.push_back(fmt::format(
        "warning     validation repeats itself: train.validation_batches * train.global_batch = "
        "{} sequences, but there are {}; {}",
        read, there,
        there < train.global_batch
            ? std::string("more validation data avoids it")
            : fmt::format("train.validation_batches = {} reads each at most once",
                          there / train.global_batch)));
  }
  return lines;
}

}  // namespace kzero::train

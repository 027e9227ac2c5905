#include "metrics/data_summary.hpp"

#include <fmt/format.h>

#include "metrics/progress.hpp"

namespace kzero::metrics {

std::string data_lines(const DataSummary& data) {
  const auto count = [](Index value) { return format_count(static_cast<double>(value)); };
  const auto files_of = [&](const auto& part) {
    return fmt::format("{} tokens in {} file{}, {} sequences", count(part.tokens), part.files,
                       part.files == 1 ? "" : "s", count(part.sequences));
  };
  std::string text = fmt::format("data        {}, {:.3g} epochs", files_of(data), data.epochs);
  if (const auto& packing = data.packing) {
    const auto percent = [&](Index part) {
      return 100 * static_cast<double>(part) / static_cast<double>(packing->positions);
    };
    text += fmt::format(
        "\n            packs {} documents into {} sequences, {:.0f} % full, {:.0f} % of the "
        "positions are targets",
        count(packing->documents), count(data.sequences), percent(packing->tokens),
        percent(packing->targets));
    if (packing->has_weights()) {
      text += fmt::format("\n            documents have weights from {:.4g} to {:.4g}",
                          packing->least_weight, packing->largest_weight);
    }
  }
  for (const SourceSummary& source : data.sources) {
    text += fmt::format("\n            {:.4g} % {}: {}, {:.3g} epochs", 100 * source.share,
                        source.name, files_of(source), source.epochs);
  }
  if (data.validation_sequences > 0)
    text += fmt::format("\nvalidation  {} sequences", count(data.validation_sequences));
  for (const EvaluationSummary& evaluation : data.evaluations)
    text += fmt::format("\nevaluation  {}: {}", evaluation.name, files_of(evaluation));
  return text;
}

}  // namespace kzero::metrics

#include "metrics/data_summary.hpp"

#include <fmt/format.h>

#include "metrics/console.hpp"

namespace kzero::metrics {

std::string data_lines(const DataSummary& data) {
  const auto count = [](Index value) { return format_count(static_cast<double>(value)); };
  std::string text = fmt::format("data        {} tokens in {} file{}, {} sequences, {:.3g} epochs",
                                 count(data.tokens), data.files, data.files == 1 ? "" : "s",
                                 count(data.sequences), data.epochs);
  if (data.validation_sequences > 0)
    text += fmt::format("\nvalidation  {} sequences", count(data.validation_sequences));
  return text;
}

}  // namespace kzero::metrics

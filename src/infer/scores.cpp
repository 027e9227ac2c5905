#include "infer/scores.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.hpp"
#include "data/batch_source.hpp"

namespace kzero::infer {

namespace {

/// Every rank has the same sums, so all throw alike.
void require_finite(double sum, const char* what) {
  if (std::isfinite(sum)) return;
  throw grid::AgreedError(
      ExitCode::diverged,
      fmt::format("the {} is {}: the weights are those of a diverged training, or too large for "
                  "this --precision",
                  what, sum));
}

/// An ending of an example as a row.
struct EndingRow {
  const data::ChoiceExample* example;
  const std::vector<Token>* ending;
};

std::vector<EndingRow> rows_of(const std::vector<data::ChoiceExample>& examples) {
  std::vector<EndingRow> rows;
  for (const data::ChoiceExample& example : examples) {
    for (const auto& ending : example.endings) rows.push_back({&example, &ending});
  }
  return rows;
}

void fill_row(const EndingRow& row, std::span<Token> inputs, std::span<Token> targets) {
  std::vector<Token> all = row.example->context;
  all.insert(all.end(), row.ending->begin(), row.ending->end());
  std::copy(all.begin(), all.end() - 1, inputs.begin());
  std::copy(all.begin() + 1, all.end(), targets.begin());
}

double sum_of(std::span<const float> losses) {
  double sum = 0;
  for (const float loss : losses) sum += static_cast<double>(loss);
  return sum;
}

Index first_least(std::span<const double> values) {
  return std::ranges::min_element(values) - values.begin();
}

/// Adds up each batch's sum of losses and number of bytes.
TextScore text_score(std::span<const double> numbers, Index tokens, bool has_bytes) {
  double sum = 0, bytes = 0;
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    sum += numbers[i];
    bytes += numbers[i + 1];
  }
  require_finite(sum, "loss");
  TextScore result{.loss = sum / static_cast<double>(tokens), .tokens = tokens};
  if (has_bytes) result.bytes = static_cast<Index>(bytes);
  return result;
}

}  // namespace

std::vector<double> score(ForwardModel& model, const grid::Group& data, const Rows& rows,
                          Index width, const Fold& fold, const BeforeRound& before_round) {
  const ForwardShape& shape = model.shape();
  const Index batches = ceil_div(rows.count, shape.batch), ranks = data.size();
  const Index rounds = ceil_div(batches, ranks);
  const auto elements = static_cast<std::size_t>(shape.batch * shape.sequence);
  const auto length = static_cast<std::size_t>(shape.sequence);
  std::vector<Token> inputs(elements), targets(elements);
  std::vector<float> losses(elements);
  std::vector<double> mine(static_cast<std::size_t>(rounds * width));
  for (Index round = 0; round < rounds; ++round) {
    before_round();
    const Index batch = round * ranks + data.rank();
    if (batch >= batches) {
      model.token_losses({}, {}, {});
      continue;
    }
    std::ranges::fill(inputs, 0);
    std::ranges::fill(targets, 0);
    const Index first = batch * shape.batch;
    for (Index i = 0; i < std::min(shape.batch, rows.count - first); ++i) {
      const auto at = static_cast<std::size_t>(i) * length;
      rows.read(first + i, std::span(inputs).subspan(at, length),
                std::span(targets).subspan(at, length));
    }
    model.token_losses(inputs, targets, losses);
    fold(first, targets, losses,
         std::span(mine).subspan(static_cast<std::size_t>(round * width),
                                 static_cast<std::size_t>(width)));
  }
  const std::vector<double> all = data.all_gather(mine);
  std::vector<double> ordered;
  ordered.reserve(static_cast<std::size_t>(batches * width));
  for (Index batch = 0; batch < batches; ++batch) {
    const Index at = (batch % ranks * rounds + batch / ranks) * width;
    ordered.insert(ordered.end(), all.begin() + at, all.begin() + at + width);
  }
  return ordered;
}

double TextScore::perplexity() const { return std::exp(loss); }

std::optional<double> TextScore::bits_per_byte() const {
  if (!bytes || *bytes == 0) return std::nullopt;
  return loss / std::numbers::ln2 * static_cast<double>(tokens) / static_cast<double>(*bytes);
}

TextScore score_text(ForwardModel& model, const grid::Group& data, const TokenReader& text,
                     Index most, std::span<const Index> byte_lengths,
                     const BeforeRound& before_round) {
  const Index length = model.shape().sequence, batch = model.shape().batch;
  const Index all = std::max<Index>(0, text.size - 1);
  const Index tokens = most > 0 ? std::min(most, all) : all;
  Rows rows;
  rows.count = ceil_div(tokens, length);
  rows.read = [&](Index row, std::span<Token> inputs, std::span<Token> targets) {
    const Index begin = row * length, count = std::min(length, tokens - begin);
    text.read(begin, count, inputs.data());
    text.read(begin + 1, count, targets.data());
  };
  const auto fold = [&](Index first, std::span<const Token> targets, std::span<const float> losses,
                        std::span<double> numbers) {
    const auto count = static_cast<std::size_t>(std::min(batch * length, tokens - first * length));
    numbers[0] = sum_of(losses.first(count));
    if (byte_lengths.empty()) return;
    Index bytes = 0;
    for (const Token token : targets.first(count)) bytes += byte_lengths[token];
    numbers[1] = static_cast<double>(bytes);
  };
  return text_score(score(model, data, rows, 2, fold, before_round), tokens, !byte_lengths.empty());
}

TextScore score_documents(ForwardModel& model, const grid::Group& data,
                          const data::DocumentFiles& documents, std::span<const Index> byte_lengths,
                          const BeforeRound& before_round) {
  const auto length = static_cast<std::size_t>(model.shape().sequence);
  const Index batch = model.shape().batch;
  const Rows rows{documents.documents(),
                  [&](Index row, std::span<Token> inputs, std::span<Token> targets) {
                    std::ranges::fill(targets, no_target);
                    documents.read(row, inputs.data(), targets.data());
                  }};
  const auto fold = [&](Index first, std::span<const Token> targets, std::span<const float> losses,
                        std::span<double> numbers) {
    const auto there = static_cast<std::size_t>(std::min(batch, rows.count - first)) * length;
    for (std::size_t i = 0; i < there; ++i) {
      if (targets[i] == no_target) continue;
      numbers[0] += static_cast<double>(losses[i]);
      if (!byte_lengths.empty()) numbers[1] += static_cast<double>(byte_lengths[targets[i]]);
    }
  };
  return text_score(score(model, data, rows, 2, fold, before_round), documents.target_count(),
                    !byte_lengths.empty());
}

double ChoiceScore::accuracy() const {
  return static_cast<double>(right_by_sum) / static_cast<double>(sums.size());
}

double ChoiceScore::accuracy_normalized() const {
  return static_cast<double>(right_by_mean) / static_cast<double>(means.size());
}

ChoiceScore score_choices(ForwardModel& model, const grid::Group& data,
                          const std::vector<data::ChoiceExample>& examples,
                          const BeforeRound& before_round) {
  const Index batch = model.shape().batch;
  const auto length = static_cast<std::size_t>(model.shape().sequence);
  const std::vector<EndingRow> endings = rows_of(examples);
  const Rows rows{std::ssize(endings),
                  [&](Index row, std::span<Token> inputs, std::span<Token> targets) {
                    fill_row(endings[row], inputs, targets);
                  }};
  const auto fold = [&](Index first, std::span<const Token>, std::span<const float> losses,
                        std::span<double> numbers) {
    const Index count = std::min(batch, rows.count - first);
    for (Index i = 0; i < count; ++i) {
      const EndingRow& row = endings[first + i];
      // The target at position p is token p + 1 of the row.
      const std::size_t begin = static_cast<std::size_t>(i) * length + row.example->context.size();
      numbers[i] = sum_of(losses.subspan(begin - 1, row.ending->size()));
    }
  };
  const std::vector<double> sums = score(model, data, rows, batch, fold, before_round);
  ChoiceScore result;
  auto at = sums.begin();
  for (const data::ChoiceExample& example : examples) {
    std::vector<double> sum, mean;
    for (const auto& ending : example.endings) {
      require_finite(*at, "loss of an ending");
      sum.push_back(*at++);
      mean.push_back(sum.back() / static_cast<double>(ending.size()));
    }
    result.sums.push_back(first_least(sum));
    result.means.push_back(first_least(mean));
    if (result.sums.back() == example.label) ++result.right_by_sum;
    if (result.means.back() == example.label) ++result.right_by_mean;
  }
  return result;
}

}  // namespace kzero::infer

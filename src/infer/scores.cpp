#include "infer/scores.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.hpp"
#include "data/batch_source.hpp"
#include "data/sampler.hpp"

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

Index first_min(std::span<const double> values) {
  return std::ranges::min_element(values) - values.begin();
}

/// Adds up each chunk's sum of losses and number of bytes, the first of its `width` numbers.
TextScore text_score(std::span<const double> numbers, Index width, Index tokens, bool has_bytes) {
  double sum = 0, bytes = 0;
  for (Index i = 0; i < std::ssize(numbers); i += width) {
    sum += numbers[i];
    bytes += numbers[i + 1];
  }
  require_finite(sum, "loss");
  TextScore result{.loss = sum / static_cast<double>(tokens), .tokens = tokens};
  if (has_bytes) result.bytes = static_cast<Index>(bytes);
  return result;
}

/// Sets log_probs to minus the sum of each row's losses. Each chunk has `width` numbers; those from
/// the third on are sums of its batch's rows.
void add_rows(std::span<const double> numbers, Index width, Index chunks,
              std::span<double> log_probs) {
  std::ranges::fill(log_probs, 0);
  const Index batch = width - 2;
  for (Index chunk = 0; chunk < std::ssize(numbers) / width; ++chunk) {
    for (Index i = 0; i < batch; ++i) {
      const Index row = chunk / chunks * batch + i;
      if (row < std::ssize(log_probs)) log_probs[row] -= numbers[chunk * width + 2 + i];
    }
  }
}

/// Reads a batch that begins with row `first`. Rows that do not exist have token 0.
void read_batch(const Rows& rows, Index first, const ForwardShape& shape, std::span<Token> inputs,
                std::span<Token> targets) {
  const auto length = static_cast<std::size_t>(shape.sequence);
  std::ranges::fill(inputs, 0);
  std::ranges::fill(targets, 0);
  for (Index i = 0; i < std::min(shape.batch, rows.count - first); ++i) {
    const auto at = static_cast<std::size_t>(i) * length;
    rows.read(first + i, inputs.subspan(at, length), targets.subspan(at, length));
  }
}

/// Returns the `width` numbers of each chunk in the order of the batches. `all` has those of each
/// rank's rounds, rank after rank.
std::vector<double> in_order(const data::BatchPlan& plan, Index width,
                             const std::vector<double>& all) {
  const Index count = plan.own_chunks() * width;
  std::vector<double> ordered;
  ordered.reserve(static_cast<std::size_t>(plan.parts() * count));
  for (Index part = 0; part < plan.parts(); ++part) {
    const data::Turn turn = plan.turn(part);
    const auto from = all.begin() + (turn.rank * plan.rounds() + turn.round) * count;
    ordered.insert(ordered.end(), from, from + count);
  }
  return ordered;
}

/// Returns the sum of the losses of each ending's tokens.
std::vector<double> ending_sums(ForwardModel& model, const grid::Group& data,
                                const std::vector<EndingRow>& endings,
                                const BeforeRound& before_round) {
  const Index batch = model.shape().batch, length = model.shape().sequence;
  const Rows rows{std::ssize(endings),
                  [&](Index row, std::span<Token> inputs, std::span<Token> targets) {
                    fill_row(endings[row], inputs, targets);
                  }};
  const auto fold = [&](const ScoredChunk& chunk, std::span<double> numbers) {
    const Index count = std::min(batch, rows.count - chunk.first);
    for (Index i = 0; i < count; ++i) {
      const EndingRow& row = endings[chunk.first + i];
      // The target at position p is token p + 1 of the row.
      const Index begin = i * length + std::ssize(row.example->context) - 1;
      const std::size_t from = chunk.place_of(begin);
      const std::size_t to = chunk.place_of(begin + std::ssize(*row.ending));
      numbers[i] = sum_of(chunk.losses.subspan(from, to - from));
    }
  };
  const std::vector<double> numbers = score(model, data, rows, batch, fold, before_round);
  const Index chunks = model.part().chunks;
  std::vector<double> sums(endings.size());
  for (Index i = 0; i < std::ssize(numbers); ++i) {
    const Index row = i / (chunks * batch) * batch + i % batch;
    if (row < rows.count) sums[row] += numbers[i];
  }
  return sums;
}

}  // namespace

/// The sequence ranks are those of grid::ProcessGrid.
data::BatchPlan batch_plan(const ForwardModel& model, const grid::Group& data, Index rows) {
  const Index batch = model.shape().batch;
  return {.global_batch = round_up(rows, batch),
          .ranks = data.size(),
          .micro_batch = batch,
          .nodes = std::max<Index>(1, data.shape().nodes),
          .sequence = model.part().size,
          .chunks = model.part().chunks};
}

std::vector<double> score(ForwardModel& model, const grid::Group& data, const Rows& rows,
                          Index width, const Fold& fold, const BeforeRound& before_round) {
  const ForwardShape& shape = model.shape();
  const data::BatchPlan plan = batch_plan(model, data, rows.count);
  const auto elements = static_cast<std::size_t>(shape.batch * shape.sequence);
  const std::size_t own = elements / static_cast<std::size_t>(plan.sequence);
  const std::size_t chunk = elements / static_cast<std::size_t>(plan.chunks);
  const std::size_t begin = static_cast<std::size_t>(model.part().rank) * own;
  std::vector<Token> inputs(elements), targets(elements);
  const std::span own_inputs = std::span<const Token>(inputs).subspan(begin, own);
  const std::span own_targets = std::span<const Token>(targets).subspan(begin, own);
  std::vector<float> losses(own);
  std::vector<double> mine(static_cast<std::size_t>(plan.rounds() * plan.own_chunks() * width));
  std::span<double> next(mine);
  for (Index round = 0; round < plan.rounds(); ++round) {
    before_round();
    if (!plan.has(data.rank(), round)) {
      model.token_losses({}, {}, {});
      continue;
    }
    const Index first = plan.first_sample(data.rank(), round);
    read_batch(rows, first, shape, inputs, targets);
    model.token_losses(own_inputs, own_targets, losses);
    for (std::size_t at = 0; at < own; at += chunk) {
      fold({first, static_cast<Index>(begin + at), own_targets.subspan(at, chunk),
            std::span<const float>(losses).subspan(at, chunk)},
           next.first(static_cast<std::size_t>(width)));
      next = next.subspan(static_cast<std::size_t>(width));
    }
  }
  return in_order(plan, width, data.all_gather(mine));
}

double TextScore::perplexity() const { return std::exp(loss); }

std::optional<double> TextScore::bits_per_byte() const {
  if (!bytes || *bytes == 0) return std::nullopt;
  return loss / std::numbers::ln2 * static_cast<double>(tokens) / static_cast<double>(*bytes);
}

TextScore score_text(ForwardModel& model, const grid::Group& data, const TokenReader& text,
                     Index max_tokens, std::span<const Index> byte_lengths,
                     const BeforeRound& before_round) {
  const Index length = model.shape().sequence;
  const Index all = std::max<Index>(0, text.size - 1);
  const Index tokens = max_tokens > 0 ? std::min(max_tokens, all) : all;
  Rows rows;
  rows.count = ceil_div(tokens, length);
  rows.read = [&](Index row, std::span<Token> inputs, std::span<Token> targets) {
    const Index begin = row * length, count = std::min(length, tokens - begin);
    text.read(begin, count, inputs.data());
    text.read(begin + 1, count, targets.data());
  };
  const auto fold = [&](const ScoredChunk& chunk, std::span<double> numbers) {
    const std::size_t count = chunk.place_of(tokens - chunk.first * length);
    numbers[0] = sum_of(chunk.losses.first(count));
    if (byte_lengths.empty()) return;
    Index bytes = 0;
    for (const Token token : chunk.targets.first(count)) bytes += byte_lengths[token];
    numbers[1] = static_cast<double>(bytes);
  };
  return text_score(score(model, data, rows, 2, fold, before_round), 2, tokens,
                    !byte_lengths.empty());
}

TextScore score_documents(ForwardModel& model, const grid::Group& data,
                          const data::DocumentFiles& documents, std::span<const Index> byte_lengths,
                          const BeforeRound& before_round, std::span<double> log_probs) {
  const Index length = model.shape().sequence, batch = model.shape().batch;
  const Rows rows{documents.documents(),
                  [&](Index row, std::span<Token> inputs, std::span<Token> targets) {
                    std::ranges::fill(targets, no_target);
                    documents.read(row, inputs.data(), targets.data());
                  }};
  // The numbers of all documents of a chunk, then the sum of each row.
  const Index width = log_probs.empty() ? 2 : 2 + batch;
  const auto fold = [&](const ScoredChunk& chunk, std::span<double> numbers) {
    const std::size_t there = chunk.place_of((rows.count - chunk.first) * length);
    for (std::size_t i = 0; i < there; ++i) {
      if (chunk.targets[i] == no_target) continue;
      numbers[0] += static_cast<double>(chunk.losses[i]);
      if (!byte_lengths.empty()) numbers[1] += static_cast<double>(byte_lengths[chunk.targets[i]]);
    }
    for (Index row = 0; row < width - 2; ++row) {
      const std::size_t from = std::min(there, chunk.place_of(row * length));
      const std::size_t to = std::min(there, chunk.place_of((row + 1) * length));
      numbers[2 + row] = sum_of(chunk.losses.subspan(from, to - from));
    }
  };
  const std::vector<double> numbers = score(model, data, rows, width, fold, before_round);
  if (!log_probs.empty()) add_rows(numbers, width, model.part().chunks, log_probs);
  return text_score(numbers, width, documents.target_count(), !byte_lengths.empty());
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
  const std::vector<double> sums = ending_sums(model, data, rows_of(examples), before_round);
  ChoiceScore result;
  auto at = sums.begin();
  for (const data::ChoiceExample& example : examples) {
    std::vector<double> sum, mean;
    for (const auto& ending : example.endings) {
      require_finite(*at, "loss of an ending");
      sum.push_back(*at++);
      mean.push_back(sum.back() / static_cast<double>(ending.size()));
    }
    result.sums.push_back(first_min(sum));
    result.means.push_back(first_min(mean));
    if (result.sums.back() == example.label) ++result.right_by_sum;
    if (result.means.back() == example.label) ++result.right_by_mean;
  }
  return result;
}

}  // namespace kzero::infer

// Losses of rows of tokens. The data ranks of a launch divide the rows, and several ranks may share
// each row. The batches, their chunks and the order in which sums are added depend only on the rows
// and train.sequence_chunks. Every number of data ranks therefore gives the same bits.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "data/choice_file.hpp"
#include "data/document_files.hpp"
#include "data/sampler.hpp"
#include "infer/loaded_model.hpp"

namespace kzero::infer {

/// Rows to score: each has the model's sequence length of inputs and targets.
struct Rows {
  Index count = 0;
  /// Fills one row; untouched elements are token 0.
  std::function<void(Index row, std::span<Token> inputs, std::span<Token> targets)> read;
};

/// A chunk of a batch: all of its rows, or with several chunks a part of its only row. Rows at the
/// end of the last batch may not exist.
struct ScoredChunk {
  Index first = 0;  // row of the batch
  Index begin = 0;  // of the chunk among the batch's elements [batch * sequence]
  std::span<const Token> targets;
  std::span<const float> losses;

  /// The index in the chunk of an element of the batch. Elements before the chunk have index 0, and
  /// those after it the size of the chunk.
  std::size_t place_of(Index element) const {
    return static_cast<std::size_t>(
        std::clamp<Index>(element - begin, 0, static_cast<Index>(losses.size())));
  }
};

/// Computes numbers from the losses of a chunk. The numbers are 0 before.
using Fold = std::function<void(const ScoredChunk& chunk, std::span<double> numbers)>;

/// How the data ranks divide this many rows.
data::BatchPlan batch_plan(const ForwardModel& model, const grid::Group& data, Index rows);

/// Called by every rank before each round of batches; may be collective over all of them. An
/// exception ends the scoring, so it must be thrown on every rank or on none.
using BeforeRound = std::function<void()>;

/// Returns the `width` numbers of each chunk of each batch, in their order, on every rank.
/// Collective over all ranks of the grid.
std::vector<double> score(ForwardModel& model, const grid::Group& data, const Rows& rows,
                          Index width, const Fold& fold, const BeforeRound& before_round);

/// The tokens of a text.
struct TokenReader {
  Index size = 0;
  /// Reads `count` tokens from token `begin` on.
  std::function<void(Index begin, Index count, Token* tokens)> read;
};

/// The score of a text.
struct TextScore {
  double loss = 0;               // mean of -log p of a token, natural log
  Index tokens = 0;              // number of scored tokens
  std::optional<Index> bytes{};  // of the text that they represent

  double perplexity() const;
  /// The mean of -log2 p per byte; none without bytes.
  std::optional<double> bits_per_byte() const;
};

/// Scores every token of the text except the first, or the first `max_tokens` of them (0: all).
/// Window w has tokens w T to w T + T, as in training's sampler; the last window may be shorter.
/// Each token is predicted from the tokens before it in its window. `byte_lengths` has the bytes of
/// each token; empty if they are unknown. Throws AgreedError(diverged) if the loss is not finite.
/// If a file cannot be read, only that rank throws. Collective over all ranks of the grid.
TextScore score_text(ForwardModel& model, const grid::Group& data, const TokenReader& text,
                     Index max_tokens, std::span<const Index> byte_lengths,
                     const BeforeRound& before_round);

/// Scores the targets of each document, which is alone in its row. No document may be longer than
/// the model's sequence. Sets log_probs [documents] on every rank to the sum of ln p of each
/// document's targets, unless it is empty. `byte_lengths` and errors are as of score_text.
/// Collective over all ranks of the grid.
TextScore score_documents(ForwardModel& model, const grid::Group& data,
                          const data::DocumentFiles& documents, std::span<const Index> byte_lengths,
                          const BeforeRound& before_round, std::span<double> log_probs = {});

struct ChoiceScore {
  std::vector<Index> sums;   // for each example, the ending with the smallest sum of -log p
  std::vector<Index> means;  // the ending with the smallest mean over its tokens
  Index right_by_sum = 0, right_by_mean = 0;

  double accuracy() const;             // share of right_by_sum
  double accuracy_normalized() const;  // share of right_by_mean
};

/// Scores the endings of each example after its context; the first of several equal ones wins. A
/// context with an ending may have at most the model's sequence length + 1 tokens. Throws as
/// score_text does. Collective over all ranks of the grid.
ChoiceScore score_choices(ForwardModel& model, const grid::Group& data,
                          const std::vector<data::ChoiceExample>& examples,
                          const BeforeRound& before_round);

}  // namespace kzero::infer

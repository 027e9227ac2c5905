#include "engine/verification.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/philox.hpp"
#include "engine/engine.hpp"
#include "runtime/host_name.hpp"

namespace kzero::engine {

namespace {

/// Names the ranks of a launch by their rank in the world.
class RankNames {
 public:
  /// Only the root can name ranks. Collective over `world`.
  explicit RankNames(const grid::ProcessGrid& grid)
      : grid_(grid), hosts_(grid.world().gather(runtime::host_name())) {}

  std::string of(Index data_rank, Index tensor_rank) const {
    const Index rank = grid_.world_rank(data_rank, tensor_rank);
    return fmt::format("rank {} on {}", grid_.world().launch_rank(static_cast<int>(rank)),
                       hosts_[rank]);
  }

  /// Names a data-parallel rank: "one of" its tensor ranks if there are several.
  std::string of(Index data_rank, std::span<const Index> tensor_ranks) const {
    std::vector<std::string> names;
    for (const Index t : tensor_ranks) names.push_back(of(data_rank, t));
    return names.size() == 1 ? names.front() : fmt::format("one of {}", fmt::join(names, ", "));
  }

  /// Names several data-parallel ranks, with `word` before the last.
  std::string of(std::span<const Index> data_ranks, std::span<const Index> tensor_ranks,
                 std::string_view word) const {
    std::string text;
    for (std::size_t i = 0; i < data_ranks.size(); ++i) {
      if (i > 0) text += i + 1 == data_ranks.size() ? fmt::format(" {} ", word) : ", ";
      text += of(data_ranks[i], tensor_ranks);
    }
    return text;
  }

 private:
  const grid::ProcessGrid& grid_;
  std::vector<std::string> hosts_;
};

std::string sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

/// Describes which ranks are wrong and the evidence.
std::string finding(const Verdict& verdict, const RankNames& names) {
  const auto& ranks = verdict.tensor_ranks;
  const std::string wrong = sentence(names.of(verdict.wrong, ranks, "and"));
  const bool is_one = verdict.wrong.size() == 1;
  if (verdict.evidence == Evidence::outvoted)
    return fmt::format("{} computed wrongly: {} have the same result. ", wrong,
                       names.of(verdict.right, std::vector<Index>{0}, "and"));
  if (verdict.evidence == Evidence::unstable)
    return fmt::format("{} computed wrongly: {} different results. ", wrong,
                       is_one ? "repeating it gave" : "each gave");
  return verdict.wrong.size() == 2
             ? fmt::format(
                   "{} each repeat their result, so one of them computes wrongly; three or "
                   "more data-parallel ranks can tell which. ",
                   wrong)
             : fmt::format(
                   "{} have three different results, so two of them or all compute "
                   "wrongly. ",
                   wrong);
}

}  // namespace

Verification::Verification(Index every, const Blueprint& blueprint, const grid::ProcessGrid& grid)
    : every_(every), plan_(blueprint.batches), table_(blueprint.table), grid_(grid) {
  for (const zero::ScheduleStep& step : blueprint.training.steps())
    order_.insert(order_.end(), step.complete.begin(), step.complete.end());
}

Computation Verification::second(Index step) const {
  const Index others = plan_.ranks - 1;
  return {.shift = others == 0 ? 0 : step / every_ % others + 1, .hashes = 1, .reduces = false};
}

/// Returns the computations that find the faulty rank: one by a third rank or, with two ranks, a
/// repetition by each. A single rank needs none, because its two results differ.
std::vector<Computation> Verification::more(Index step) const {
  const auto with = [](Index shift) {
    return Computation{.shift = shift, .hashes = 0, .reduces = false};
  };
  if (plan_.ranks == 1) return {};
  if (plan_.ranks == 2) return {with(0), with(1)};
  return {with(second(step).shift % (plan_.ranks - 1) + 1)};
}

/// Combines all results of a computation of a micro-batch into one word.
std::uint64_t Verification::digest(const GradientHashes& hashes, Index computation,
                                   Index round) const {
  const auto tensor_rank = static_cast<std::uint64_t>(grid_.tensor().rank());
  std::uint64_t all = mixed(hashes.loss(computation, round) + tensor_rank);
  for (const std::uint64_t hash : hashes.gradients(computation, round)) all = mixed(all ^ hash);
  return all;
}

/// Returns a word for each micro-batch. The word is nonzero if the two computations differ.
std::vector<std::uint64_t> Verification::differences(Index step,
                                                     const GradientHashes& hashes) const {
  std::vector<std::uint64_t> words(static_cast<std::size_t>(plan_.micro_batches()));
  const auto add = [&](const Computation& by, std::uint64_t sign) {
    const Index rank = by.dealt_to(grid_.data().rank(), plan_.ranks);
    for (Index round = 0; round < plan_.rounds() && plan_.has(rank, round); ++round)
      words[plan_.number(rank, round)] += sign * digest(hashes, *by.hashes, round);
  };
  add(first(), 1);
  add(second(step), ~std::uint64_t{0});  // minus 1
  grid_.world().sum(words);
  return words;
}

/// Sends the words of a micro-batch from the ranks that computed it to all ranks.
Computed Verification::collect(const GradientHashes& hashes, const Computation& by,
                               Index micro_batch) const {
  const auto [dealt_to, round] = plan_.turn(micro_batch);
  const std::size_t width = order_.size() + 1;
  const auto tensor_ranks = static_cast<std::size_t>(grid_.tensor().size());
  std::vector<std::uint64_t> words(tensor_ranks * width);
  if (by.dealt_to(grid_.data().rank(), plan_.ranks) == dealt_to) {
    std::uint64_t* mine = words.data() + static_cast<std::size_t>(grid_.tensor().rank()) * width;
    *mine++ = hashes.loss(*by.hashes, round);
    const auto gradients = hashes.gradients(*by.hashes, round);
    for (const Index unit : order_) *mine++ = gradients[unit];
  }
  grid_.world().sum(words);
  Computed computed{(dealt_to + by.shift) % plan_.ranks};
  for (auto at = words.begin(); at != words.end(); at += static_cast<std::ptrdiff_t>(width))
    computed.words.emplace_back(at, at + static_cast<std::ptrdiff_t>(width));
  return computed;
}

void Verification::require_agreement(Index step, const GradientHashes& hashes, const Again& again) {
  const std::vector<std::uint64_t> found = differences(step, hashes);
  const auto differ = [](std::uint64_t word) { return word != 0; };
  const auto lowest = std::ranges::find_if(found, differ);
  if (lowest == found.end()) {
    last_agreed_ = step;
    return;
  }
  const auto micro_batch = static_cast<Index>(lowest - found.begin());
  std::vector<Computed> all{collect(hashes, first(), micro_batch),
                            collect(hashes, second(step), micro_batch)};
  for (const Computation& by : more(step)) {
    again(by);
    all.push_back(collect(hashes, by, micro_batch));
  }
  const auto others = static_cast<Index>(std::ranges::count_if(found, differ)) - 1;
  throw Mismatch("verification", describe(step, micro_batch, others, judge(all)));
}

/// Returns the message on every rank. Collective over the world.
std::string Verification::describe(Index step, Index micro_batch, Index others,
                                   const Verdict& verdict) const {
  const RankNames names(grid_);
  if (!grid_.world().is_root()) return grid_.world().broadcast("");
  const data::Turn turn = plan_.turn(micro_batch);
  const Index sample = plan_.first_sample(turn.rank, turn.round);
  std::string place = "its loss";
  if (verdict.place > 0) {
    const Index unit = order_[verdict.place - 1];
    place = "the gradient of " + table_[unit].name;
  }
  std::string text = fmt::format(
      "run.verify_every: micro-batch {} of step {} (samples {} to {}) was computed twice with "
      "different results, first in {}. {}",
      micro_batch, step, sample, sample + plan_.micro_batch - 1, place, finding(verdict, names));
  if (others > 0)
    text += fmt::format("{} more micro-batch{} different results. ", others,
                        others == 1 ? " has" : "es have");
  if (last_agreed_ >= 0) text += fmt::format("The last step that agreed is {}. ", last_agreed_);
  return grid_.world().broadcast(
      text + "The step is dropped; check the node, and start the run again without it");
}

}  // namespace kzero::engine

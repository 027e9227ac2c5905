#include "plan/step_time.hpp"

#include <algorithm>
#include <array>

namespace kzero::plan {

namespace {

/// The seconds of an outline's collectives.
class Prices {
 public:
  Prices(const Outline& outline, const Network& network) : o_(outline), network_(network) {
    network_.node_ranks = outline.node_ranks;
    if (o_.has_rings) ring_byte_ = seconds_per_byte(network_, o_.data, Pattern::ring);
  }

  double of(const Collective& collective) const {
    return collective.bytes() == 0 ? 0 : seconds_of(network_, o_.sharing, ring_byte_, collective);
  }

  double of(const TensorTraffic& traffic) const {
    const bool leaves = o_.tensor.size > o_.node_ranks || o_.node_ranks % o_.tensor.size != 0;
    const Pattern sums = o_.has_rings ? Pattern::exchange : Pattern::swaps;
    const Pattern gathers = o_.has_rings ? Pattern::ring : Pattern::swaps;
    return traffic.exchanged * seconds_per_byte(network_, o_.tensor, sums) +
           traffic.gathered * seconds_per_byte(network_, o_.tensor, gathers) +
           (traffic.exchanges + traffic.hops) *
               (leaves ? network_.between_latency : network_.within_latency);
  }

  double of(const UnitSum& sum) const {
    return static_cast<double>(sum.slices) * (of(sum.collect) + of(sum.exchange) + of(sum.gather));
  }

 private:
  const Outline& o_;
  Network network_;
  double ring_byte_ = 0;
};

/// A rank with its link: the time on each.
class LinkedRank {
 public:
  explicit LinkedRank(bool in_flight) : in_flight_(in_flight) {}

  double now() const { return now_; }
  void work(double seconds) { now_ += seconds; }
  void wait(double until) { now_ = std::max(now_, until); }

  /// Begins messages and returns when they arrive.
  double begin(double seconds) {
    link_ = std::max(link_, now_) + seconds;
    if (!in_flight_) wait(link_);
    return link_;
  }

  /// Lets time pass in which everything repeats.
  void skip(double seconds) {
    now_ += seconds;
    link_ += seconds;
  }

 private:
  bool in_flight_;
  double now_ = 0, link_ = 0;
};

/// A unit's reduction, as zero::Reduction makes it.
class Reduction {
 public:
  Reduction(const Outline& o, const Prices& prices, const UnitSum& sum, LinkedRank& rank)
      : rank_(rank),
        slots_(o.slots),
        slices_(sum.slices),
        collect_(prices.of(sum.collect)),
        exchange_(prices.of(sum.exchange)),
        gather_(prices.of(sum.gather)) {
    if (o.device_sums) {
      const auto n = static_cast<double>(slices_);
      arrivals_ = {rank.begin(n * (collect_ + exchange_))};
      if (gather_ > 0) gathered_ = rank.begin(n * gather_);
      slices_ = 1, gather_ = 0;
      return;
    }
    for (Index i = 0; i < std::min(slices_, slots_); ++i) begin();
  }

  /// Returns when the gather of the sum arrives; 0 without one.
  double finish() {
    for (Index i = 0; i < slices_; ++i) {
      rank_.wait(arrivals_[i]);
      if (i + slots_ < slices_) begin();
      if (gather_ > 0) gathered_ = rank_.begin(gather_);
    }
    return gathered_;
  }

 private:
  void begin() {
    if (collect_ > 0) rank_.wait(rank_.begin(collect_));
    arrivals_.push_back(exchange_ > 0 ? rank_.begin(exchange_) : rank_.now());
  }

  LinkedRank& rank_;
  Index slots_, slices_;
  double collect_, exchange_, gather_;
  double gathered_ = 0;
  std::vector<double> arrivals_;
};

/// Replays steps.
class Replay {
 public:
  Replay(const Outline& outline, const Network& network, const Estimate& parts)
      : o_(outline),
        prices_(outline, network),
        parts_(parts),
        rank_(outline.in_flight),
        arrivals_(outline.updates.size()) {
    for (const Collective& gather : outline.gathers) gathers_.push_back(prices_.of(gather));
    for (const Collective& gather : outline.update_gathers)
      update_gathers_.push_back(prices_.of(gather));
    gathers_.resize(outline.updates.size());
  }

  double now() const { return rank_.now(); }

  void step() {
    run_rounds();
    const double matrices = exchange_matrices();
    for (std::size_t u = 0; u < o_.updates.size(); ++u) {
      rank_.work((parts_.optimizer - matrices) * o_.updates[u]);
      if (!update_gathers_.empty()) arrivals_[u] = rank_.begin(update_gathers_[u]);
    }
    if (o_.device_sums) return;  // the next step waits for each unit
    for (double& arrival : arrivals_) arrive(arrival);
  }

 private:
  /// All rounds between the third and the last take as long as the third.
  void run_rounds() {
    constexpr Index replayed = 3;
    double begin = rank_.now();
    for (Index round = 0; round + 1 < std::min(o_.rounds, replayed + 1); ++round) {
      begin = rank_.now();
      run_round(o_.sums);
    }
    if (o_.rounds > replayed + 1)
      rank_.skip(static_cast<double>(o_.rounds - replayed - 1) * (rank_.now() - begin));
    run_round(o_.last_sums);
  }

  void run_round(const std::vector<UnitSum>& sums) {
    const auto rounds = static_cast<double>(o_.rounds);
    const double tensor = prices_.of(o_.tensor_per_micro_batch);
    std::vector<Reduction> open;
    double last_gather = 0;
    const auto end_reductions = [&] {
      for (Reduction& reduction : open) last_gather = std::max(last_gather, reduction.finish());
      open.clear();
    };
    for (const OutlinedOperation& operation : o_.operations) {
      for (const Index u : operation.gathers) arrivals_[u] = rank_.begin(gathers_[u]);
      for (const Index u : operation.needs) arrive(arrivals_[u]);
      rank_.work(operation.work * (parts_.model / rounds + tensor) +
                 operation.recomputed * parts_.recompute / rounds);
      end_reductions();
      if (sums.empty()) continue;
      for (const Index u : operation.complete) {
        open.emplace_back(o_, prices_, sums[u], rank_);
        if (!o_.reductions_overlap || u != operation.complete.back()) end_reductions();
      }
    }
    end_reductions();
    rank_.wait(last_gather);
  }

  /// Returns the seconds of work, which are part of the optimizer's.
  double exchange_matrices() {
    const MatrixTurns& turns = o_.matrices;
    if (turns.rounds == 0) return 0;
    const auto rounds = static_cast<double>(turns.rounds);
    const double gather = prices_.of(turns.gather), back = prices_.of(turns.back);
    const double tensor = prices_.of(turns.tensor) / rounds;
    double arriving = 0;
    std::array<double, 2> leaving{};
    const auto begin_gather = [&](Index round) {
      rank_.wait(leaving[round % 2]);
      arriving = rank_.begin(gather);
    };
    if (o_.reductions_overlap) begin_gather(0);
    for (Index round = 0; round < turns.rounds; ++round) {
      if (!o_.reductions_overlap) begin_gather(round);
      rank_.wait(arriving);
      if (o_.reductions_overlap && round + 1 < turns.rounds) begin_gather(round + 1);
      rank_.work(tensor + parts_.matrices / rounds);
      leaving[round % 2] = rank_.begin(back);
    }
    for (const double until : leaving) rank_.wait(until);
    return parts_.matrices;
  }

  void arrive(double& arrival) {
    rank_.wait(arrival);
    arrival = 0;
  }

  const Outline& o_;
  Prices prices_;
  Estimate parts_;
  LinkedRank rank_;
  std::vector<double> gathers_, update_gathers_, arrivals_;  // by unit
};

}  // namespace

double message_seconds(const Outline& outline, const Network& network) {
  const Prices prices(outline, network);
  const auto rounds = static_cast<double>(outline.rounds);
  double sum = rounds * prices.of(outline.tensor_per_micro_batch);
  for (const UnitSum& unit : outline.sums) sum += (rounds - 1) * prices.of(unit);
  for (const UnitSum& unit : outline.last_sums) sum += prices.of(unit);
  for (const OutlinedOperation& operation : outline.operations)
    for (const Index u : operation.gathers) sum += rounds * prices.of(outline.gathers[u]);
  for (const Collective& gather : outline.update_gathers) sum += prices.of(gather);
  const MatrixTurns& turns = outline.matrices;
  return sum +
         static_cast<double>(turns.rounds) * (prices.of(turns.gather) + prices.of(turns.back)) +
         prices.of(turns.tensor);
}

double step_seconds(const Outline& outline, const Network& network, const Estimate& parts) {
  Replay replay(outline, network, parts);
  replay.step();
  const double first = replay.now();
  replay.step();
  return replay.now() - first;
}

Estimate estimate(const Entry& entry, const Rates& rates, const Network& network) {
  Estimate slowest = estimate(entry.work, rates);
  double most = -1;
  for (const Outline& outline : entry.outlines) {
    Estimate parts = estimate(entry.work, rates);
    parts.messages = message_seconds(outline, network);
    const double seconds = step_seconds(outline, network, parts);
    if (seconds <= most) continue;
    most = seconds;
    parts.overlapped = std::max(0.0, parts.seconds() - seconds);
    slowest = parts;
  }
  if (slowest.messages > 0) slowest.rates.sent_bytes = entry.work.sent_bytes / slowest.messages;
  return slowest;
}

}  // namespace kzero::plan

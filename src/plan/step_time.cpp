#include "plan/step_time.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "plan/host_copies.hpp"
#include "plan/simulated_rank.hpp"

namespace kzero::plan {

namespace {

/// The seconds of an outline's collectives.
class Prices {
 public:
  Prices(const StepOutline& outline, const Network& network) : o_(outline), network_(network) {
    network_.node_ranks = outline.node_ranks;
    if (o_.has_rings) ring_byte_ = seconds_per_byte(network_, o_.data, Pattern::ring);
  }

  LinkUse of(const Collective& collective) const {
    if (collective.bytes() == 0) return {};
    return use_of(network_, o_.sharing, ring_byte_, collective);
  }

  /// The model's collectives of a micro-batch.
  double of_model() const {
    return of(o_.tensor, o_.tensor_per_micro_batch) + of(o_.sequence, o_.sequence_per_micro_batch);
  }

  double of(const Groups& group, const GroupTraffic& traffic) const {
    const Index apart = group.size * group.stride;
    const bool leaves = apart > o_.node_ranks || o_.node_ranks % apart != 0;
    const Pattern sums = o_.has_rings ? Pattern::exchange : Pattern::swaps;
    const Pattern gathers = o_.has_rings ? Pattern::ring : Pattern::swaps;
    return traffic.exchanged * seconds_per_byte(network_, group, sums) +
           traffic.gathered * seconds_per_byte(network_, group, gathers) +
           (traffic.exchanges + traffic.hops) *
               (leaves ? network_.between_latency : network_.within_latency);
  }

  double of(const UnitSum& sum) const {
    return static_cast<double>(sum.slices) *
           (of(sum.collect).seconds + of(sum.exchange).seconds + of(sum.gather).seconds);
  }

 private:
  const StepOutline& o_;
  Network network_;
  double ring_byte_ = 0;
};

/// A unit's reduction, as zero::Reduction makes it.
class Reduction {
 public:
  Reduction(const StepOutline& o, const Prices& prices, Index unit, const UnitSum& sum,
            SimulatedRank& rank)
      : rank_(rank),
        unit_(unit),
        slots_(o.slots),
        slices_(sum.slices),
        collect_(prices.of(sum.collect)),
        exchange_(prices.of(sum.exchange)),
        gather_(prices.of(sum.gather)) {
    if (o.device_sums) {
      const auto n = static_cast<double>(slices_);
      arrivals_ = {begin_messages(collect_.then(exchange_).repeated(n), Stream::sums, "sum")};
      if (gather_.seconds > 0) begin_gather(gather_.repeated(n), arrivals_[0]);
      slices_ = 1, gather_ = {};
      return;
    }
    for (Index i = 0; i < std::min(slices_, slots_); ++i) begin();
  }

  /// Returns when the gather of the sum arrives; 0 without one.
  double finish() {
    for (Index i = 0; i < slices_; ++i) {
      rank_.wait(arrivals_[i], Cause::sums);
      if (i + slots_ < slices_) begin();
      if (gather_.seconds > 0) begin_gather(gather_, 0);
    }
    return gathered_;
  }

 private:
  void begin() {
    constexpr Stream one = Stream::collectives;
    if (collect_.seconds > 0)
      rank_.wait(begin_messages(collect_, one, "sum within the node"), Cause::sums);
    const bool leaves = exchange_.seconds > 0;
    arrivals_.push_back(leaves ? begin_messages(exchange_, one, "sum") : rank_.now());
  }

  void begin_gather(const LinkUse& use, double after) {
    gathered_ = begin_messages(use, Stream::collectives, "gather of the sum", after);
  }

  double begin_messages(const LinkUse& use, Stream stream, std::string_view what,
                        double after = 0) {
    return rank_.begin(use, {stream, Cause::sums, what, unit_, after});
  }

  SimulatedRank& rank_;
  Index unit_, slots_, slices_;
  LinkUse collect_, exchange_, gather_;
  double gathered_ = 0;
  std::vector<double> arrivals_;
};

/// Replays steps.
class Replay {
 public:
  Replay(const StepOutline& outline, const Network& network, const Estimate& parts)
      : o_(outline),
        prices_(outline, network),
        parts_(parts),
        rank_(outline.in_flight),
        host_(rank_, parts.rates.host, outline),
        arrivals_(outline.updates.size()) {
    for (const Collective& gather : outline.gathers) gathers_.push_back(prices_.of(gather));
    for (const Collective& gather : outline.update_gathers)
      update_gathers_.push_back(prices_.of(gather));
    gathers_.resize(outline.updates.size());
  }

  SimulatedRank& rank() { return rank_; }

  void step() {
    run_rounds();
    const double matrices = exchange_matrices();
    for (std::size_t u = 0; u < o_.updates.size(); ++u) {
      const auto unit = static_cast<Index>(u);
      const double updated = host_.update(unit, (parts_.optimizer - matrices) * o_.updates[u]);
      if (update_gathers_.empty()) {
        arrivals_[u] = {updated, Cause::copies};
        continue;
      }
      arrivals_[u] = {rank_.begin(update_gathers_[u], {.cause = Cause::updates,
                                                       .name = "gather of updated parameters",
                                                       .unit = unit,
                                                       .after = updated}),
                      Cause::updates};
    }
    if (o_.device_sums) return;  // the next step waits for each unit
    for (Arrival& arrival : arrivals_) arrive(arrival);
  }

 private:
  /// All rounds between the third and the last take as long as the third.
  void run_rounds() {
    constexpr Index replayed = 3;
    SimulatedRank::Mark begin = rank_.mark();
    for (Index round = 0; round + 1 < std::min(o_.rounds, replayed + 1); ++round) {
      begin = rank_.mark();
      run_round(o_.sums);
    }
    if (o_.rounds > replayed + 1)
      rank_.repeat(begin, static_cast<double>(o_.rounds - replayed - 1));
    run_round(o_.last_sums);
  }

  void run_round(const std::vector<UnitSum>& sums) {
    const auto rounds = static_cast<double>(o_.rounds);
    std::vector<Reduction> open;
    double last_gather = 0;
    const auto end_reductions = [&] {
      for (Reduction& reduction : open) last_gather = std::max(last_gather, reduction.finish());
      open.clear();
    };
    for (const OutlinedOperation& operation : o_.operations) {
      for (const Index u : operation.gathers) {
        const Message message{.cause = Cause::gathers,
                              .name = "gather of parameters",
                              .unit = u,
                              .after = arrivals_[u].time};
        arrivals_[u] = {rank_.begin(gathers_[u], message), Cause::gathers};
      }
      for (const Index u : operation.needs) arrive(arrivals_[u]);
      host_.copy_kept(operation);
      const double computed =
          (operation.work * parts_.model + operation.recomputed * parts_.recompute) / rounds;
      rank_.block(blocking_messages(operation, computed), Cause::activations);
      rank_.work(computed, name_of(operation.pass), operation.unit);
      end_reductions();
      if (sums.empty()) continue;
      for (const Index u : operation.complete) {
        open.emplace_back(o_, prices_, u, sums[u], rank_);
        if (!o_.reductions_overlap || u != operation.complete.back()) end_reductions();
      }
    }
    end_reductions();
    rank_.wait(last_gather, Cause::sums);
  }

  /// Returns the seconds for which an operation waits for messages of the model. If those of the
  /// tensor group overlap, the rank waits for what `computed` seconds do not hide.
  double blocking_messages(const OutlinedOperation& operation, double computed) const {
    const double tensor = operation.work * prices_.of(o_.tensor, o_.tensor_per_micro_batch);
    const double waited = o_.tensor_overlaps ? std::max(0.0, tensor - computed) : tensor;
    return waited + operation.work * prices_.of(o_.sequence, o_.sequence_per_micro_batch);
  }

  /// Returns the seconds of work, which are part of the optimizer's.
  double exchange_matrices() {
    const MatrixTurns& turns = o_.matrices;
    if (turns.rounds == 0) return 0;
    const auto rounds = static_cast<double>(turns.rounds);
    const LinkUse gather = prices_.of(turns.gather), back = prices_.of(turns.back);
    const double tensor = prices_.of(o_.tensor, turns.tensor) / rounds;
    double arriving = 0;
    std::array<double, 2> leaving{};
    const auto begin_gather = [&](Index round) {
      rank_.wait(leaving[round % 2], Cause::matrices);
      arriving = rank_.begin(gather, {.cause = Cause::matrices, .name = "gather of matrices"});
    };
    if (o_.reductions_overlap) begin_gather(0);
    for (Index round = 0; round < turns.rounds; ++round) {
      if (!o_.reductions_overlap) begin_gather(round);
      rank_.wait(arriving, Cause::matrices);
      if (o_.reductions_overlap && round + 1 < turns.rounds) begin_gather(round + 1);
      rank_.block(tensor, Cause::matrices);
      rank_.work(parts_.matrices / rounds, "matrices", -1);
      leaving[round % 2] =
          rank_.begin(back, {.cause = Cause::matrices, .name = "return of matrices"});
    }
    for (const double until : leaving) rank_.wait(until, Cause::matrices);
    return parts_.matrices;
  }

  /// When a unit's parameters arrive, and from which gather.
  struct Arrival {
    double time = 0;
    Cause cause = Cause::gathers;
  };

  void arrive(Arrival& arrival) {
    rank_.wait(arrival.time, arrival.cause);
    arrival = {};
  }

  const StepOutline& o_;
  Prices prices_;
  Estimate parts_;
  SimulatedRank rank_;
  HostCopies host_;
  std::vector<LinkUse> gathers_, update_gathers_;  // by unit
  std::vector<Arrival> arrivals_;                  // by unit
};

}  // namespace

double message_seconds(const StepOutline& outline, const Network& network) {
  const Prices prices(outline, network);
  const auto rounds = static_cast<double>(outline.rounds);
  double sum = rounds * prices.of_model();
  for (const UnitSum& unit : outline.sums) sum += (rounds - 1) * prices.of(unit);
  for (const UnitSum& unit : outline.last_sums) sum += prices.of(unit);
  for (const OutlinedOperation& operation : outline.operations)
    for (const Index u : operation.gathers) sum += rounds * prices.of(outline.gathers[u]).seconds;
  for (const Collective& gather : outline.update_gathers) sum += prices.of(gather).seconds;
  const MatrixTurns& turns = outline.matrices;
  return sum +
         static_cast<double>(turns.rounds) *
             (prices.of(turns.gather).seconds + prices.of(turns.back).seconds) +
         prices.of(outline.tensor, turns.tensor);
}

StepTime step_time(const StepOutline& outline, const Network& network, const Estimate& parts,
                   std::vector<SpanRecord>* spans) {
  Replay replay(outline, network, parts);
  replay.step();
  const SimulatedRank::Mark first = replay.rank().mark();
  replay.rank().record(spans);
  replay.step();
  const SimulatedRank::Mark second = replay.rank().mark();
  StepTime time{.seconds = second.now - first.now};
  for (const Cause cause : all_causes) time.waits[cause] = second.waits[cause] - first.waits[cause];
  return time;
}

namespace {

/// The outline whose step takes longest, and its estimate.
std::pair<const StepOutline*, Estimate> slowest_of(const Entry& entry, const Rates& rates,
                                                   const Network& network) {
  std::pair<const StepOutline*, Estimate> slowest{nullptr, estimate(entry.work, rates)};
  double longest = -1;
  for (const StepOutline& outline : entry.outlines) {
    Estimate parts = estimate(entry.work, rates);
    parts.messages = message_seconds(outline, network);
    parts.copies = copy_seconds(outline, rates.host);
    const StepTime step = step_time(outline, network, parts);
    if (step.seconds <= longest) continue;
    longest = step.seconds;
    parts.overlapped = std::max(0.0, parts.seconds() - step.seconds);
    parts.waits = step.waits;
    slowest = {&outline, parts};
  }
  return slowest;
}

}  // namespace

Estimate estimate(const Entry& entry, const Rates& rates, const Network& network) {
  Estimate slowest = slowest_of(entry, rates, network).second;
  if (slowest.messages > 0) slowest.rates.sent_bytes = entry.work.sent_bytes / slowest.messages;
  return slowest;
}

std::vector<SpanRecord> time_line(const Entry& entry, const Rates& rates, const Network& network) {
  std::vector<SpanRecord> spans;
  const auto [outline, parts] = slowest_of(entry, rates, network);
  if (outline != nullptr) step_time(*outline, network, parts, &spans);
  return spans;
}

}  // namespace kzero::plan

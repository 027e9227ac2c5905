#include "plan/network.hpp"

#include <algorithm>
#include <cmath>

namespace kzero::plan {

namespace {

struct Node {
  Index begin, end;  // ranks

  bool holds(Index rank) const { return rank >= begin && rank < end; }
};

/// Returns how many of the members first, first + stride, ... are on the node.
Index members_in(const Node& node, const Groups& groups, Index first) {
  const Index before = std::max<Index>(0, node.begin - first + groups.stride - 1) / groups.stride;
  const Index until = (node.end - 1 - first) / groups.stride + 1;
  return std::min(until, groups.size) - before;
}

/// Returns the fraction of a rank's bytes that leave its node.
double share_outside(const Node& node, const Groups& groups, Pattern pattern, Index rank) {
  const Index position = rank / groups.stride % groups.size;
  const Index first = rank - position * groups.stride;
  if (pattern == Pattern::ring)
    return node.holds(first + (position + 1) % groups.size * groups.stride) ? 0 : 1;
  return static_cast<double>(groups.size - members_in(node, groups, first)) /
         static_cast<double>(groups.size - 1);
}

/// Returns the rate of a rank to other nodes while `senders` ranks of its node send there.
double rate_between(const Network& network, Index senders) {
  return std::min(network.rank_between,
                  network.node_between / static_cast<double>(std::max<Index>(1, senders)));
}

}  // namespace

Network uniform_network(double bytes_per_second) {
  return {.within_node = bytes_per_second,
          .rank_between = bytes_per_second,
          .node_between = std::numeric_limits<double>::infinity(),
          .within_latency = 0,
          .between_latency = 0,
          .rank_sends = bytes_per_second};
}

double seconds_per_byte(const Network& network, const Groups& groups, Pattern pattern) {
  if (groups.size == 1) return 0;
  double slowest = 1 / network.rank_sends;
  const double rings = pattern == Pattern::ring ? static_cast<double>(network.rings) : 1;
  for (Index begin = 0; begin < groups.ranks; begin += network.node_ranks) {
    const Node node{begin, std::min(begin + network.node_ranks, groups.ranks)};
    double leaves_node = 0, max_outside = 0;
    Index senders = 0;
    for (Index rank = node.begin; rank < node.end; ++rank) {
      const double outside = share_outside(node, groups, pattern, rank);
      slowest = std::max(
          {slowest, (1 - outside) / network.within_node, outside / (rings * network.rank_between)});
      leaves_node += outside;
      max_outside = std::max(max_outside, outside);
      senders += outside > 0 ? 1 : 0;
    }
    slowest = std::max(slowest, leaves_node / network.node_between);
    if (pattern != Pattern::swaps) continue;
    slowest = std::max(slowest, (1 - max_outside) / network.within_node +
                                    max_outside / rate_between(network, senders));
  }
  return slowest;
}

LinkUse LinkUse::of(Link link, double seconds) {
  LinkUse use{.seconds = seconds};
  use[link] = {seconds, seconds};
  return use;
}

LinkUse LinkUse::then(const LinkUse& next) const {
  LinkUse both = *this;
  for (const Link link : all_links) {
    both[link].busy += next[link].busy;
    if (next[link].busy > 0) both[link].end = seconds + next[link].end;
  }
  both.seconds += next.seconds;
  return both;
}

LinkUse LinkUse::repeated(double times) const {
  LinkUse all{.seconds = times * seconds};
  for (const Link link : all_links) {
    const Use& use = (*this)[link];
    if (use.busy > 0) all[link] = {times * use.busy, (times - 1) * seconds + use.end};
  }
  return all;
}

LinkUse use_of(const Network& network, Index sharing, double ring_byte,
               const Collective& collective) {
  const auto& [pattern, within, between, within_messages, between_messages] = collective;
  const double inside = within / network.within_node + within_messages * network.within_latency;
  const double outside =
      between / rate_between(network, sharing) + between_messages * network.between_latency;
  const double latency =
      within_messages * network.within_latency + between_messages * network.between_latency;
  double seconds = inside + outside;
  if (pattern == Pattern::ring) {
    seconds = latency + (within + between) * ring_byte;
  } else if (pattern == Pattern::exchange) {
    seconds =
        latency + std::max({within / network.within_node, between / rate_between(network, sharing),
                            (within + between) / network.rank_sends});
  }
  const bool leaves_node = between > 0 && std::isinf(network.rank_sends);
  if (!leaves_node) return LinkUse::of(Link::within, seconds);
  LinkUse use{.seconds = seconds};
  if (pattern == Pattern::ring) {
    const double hops = std::min(seconds, (within + between) / network.within_node);
    use[Link::between] = {seconds, seconds};
    if (within > 0) use[Link::within] = {hops, hops};
  } else {
    use[Link::between] = {outside, outside};
    if (within > 0) use[Link::within] = {inside, pattern == Pattern::swaps ? seconds : inside};
  }
  return use;
}

}  // namespace kzero::plan

#include "probe/links.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "probe/pairing.hpp"

namespace kzero::probe {

namespace {

/// Gathers every rank's links on the root, in rank order.
std::vector<MeasuredLink> gathered(const grid::Group& world,
                                   const std::vector<MeasuredLink>& mine) {
  const std::string text(reinterpret_cast<const char*>(mine.data()),
                         mine.size() * sizeof(MeasuredLink));
  std::vector<MeasuredLink> all;
  for (const std::string& part : world.gather(text)) {
    const std::size_t before = all.size();
    all.resize(before + part.size() / sizeof(MeasuredLink));
    if (!part.empty()) std::memcpy(all.data() + before, part.data(), part.size());
  }
  return all;
}

}  // namespace

std::vector<MeasuredLink> measure_between(const grid::Group& world, const grid::Nodes& nodes) {
  const int node = nodes.of(world.rank());
  const bool is_leader = nodes.first_rank(node) == world.rank();
  std::vector<MeasuredLink> mine;
  for (const int round : chosen_rounds(nodes.count(), most_rounds)) {
    const int partner = partner_of(node, nodes.count(), round);
    if (is_leader && partner >= 0) {
      const Link link = measure_link(world, nodes.first_rank(partner));
      if (node < partner) mine.push_back({node, partner, link});
    }
    wait_for_all(world);
  }
  return gathered(world, mine);
}

std::vector<MeasuredLink> measure_within(const grid::Group& world, const grid::Nodes& nodes) {
  const std::vector<int>& ranks = nodes.ranks(nodes.of(world.rank()));
  const auto position = std::ranges::find(ranks, world.rank()) - ranks.begin();
  const auto count = static_cast<std::ptrdiff_t>(ranks.size());
  std::vector<MeasuredLink> mine;
  for (const std::ptrdiff_t first : {0, 1}) {
    const std::ptrdiff_t partner = (position - first) % 2 == 0 ? position + 1 : position - 1;
    if (position >= first && partner >= first && partner < count) {
      const int other = ranks[static_cast<std::size_t>(partner)];
      const Link link = measure_link(world, other);
      if (position < partner) mine.push_back({world.rank(), other, link});
    }
    wait_for_all(world);
  }
  return gathered(world, mine);
}

Link best_of(const std::vector<MeasuredLink>& links, int place) {
  Link best{unmeasured, unmeasured};
  for (const MeasuredLink& measured : links) {
    if (measured.one != place && measured.other != place) continue;
    best.latency_seconds = std::fmin(best.latency_seconds, measured.link.latency_seconds);
    best.bytes_per_second = std::fmax(best.bytes_per_second, measured.link.bytes_per_second);
  }
  return best;
}

}  // namespace kzero::probe

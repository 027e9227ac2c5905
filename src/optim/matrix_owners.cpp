#include "optim/matrix_owners.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace kzero::optim {

MatrixOwners::MatrixOwners(const std::vector<double>& costs, Index ranks)
    : owner(costs.size()),
      tasks(static_cast<std::size_t>(ranks)),
      load(static_cast<std::size_t>(ranks)) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t i, std::size_t j) { return costs[i] > costs[j]; });
  // Ordered by load, then by rank.
  std::set<std::pair<double, Index>> waiting;
  for (Index rank = 0; rank < ranks; ++rank) waiting.insert({0, rank});
  for (const std::size_t task : order) {
    const Index rank = waiting.begin()->second;
    waiting.erase(waiting.begin());
    owner[task] = rank;
    tasks[rank].push_back(static_cast<Index>(task));
    load[rank] += costs[task];
    waiting.insert({load[rank], rank});
  }
}

Index MatrixOwners::rounds() const {
  std::size_t largest = 0;
  for (const auto& mine : tasks) largest = std::max(largest, mine.size());
  return static_cast<Index>(largest);
}

Index MatrixOwners::task(Index rank, Index round) const {
  const auto& mine = tasks[rank];
  return round < std::ssize(mine) ? mine[round] : -1;
}

}  // namespace kzero::optim

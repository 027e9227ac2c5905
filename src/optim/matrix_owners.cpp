#include "optim/matrix_owners.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
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
  // The rank that has least to do first, of those with as little the lowest.
  using Load = std::pair<double, Index>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> waiting;
  for (Index rank = 0; rank < ranks; ++rank) waiting.push({0, rank});
  for (const std::size_t task : order) {
    const Index least = waiting.top().second;
    const auto rank = static_cast<std::size_t>(least);
    waiting.pop();
    owner[task] = least;
    tasks[rank].push_back(static_cast<Index>(task));
    load[rank] += costs[task];
    waiting.push({load[rank], least});
  }
}

Index MatrixOwners::rounds() const {
  std::size_t most = 0;
  for (const auto& mine : tasks) most = std::max(most, mine.size());
  return static_cast<Index>(most);
}

Index MatrixOwners::task(Index rank, Index round) const {
  const auto& mine = tasks[static_cast<std::size_t>(rank)];
  return round < std::ssize(mine) ? mine[static_cast<std::size_t>(round)] : -1;
}

}  // namespace kzero::optim

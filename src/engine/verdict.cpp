#include "engine/verdict.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"

namespace kzero::engine {

namespace {

using Words = std::vector<std::vector<std::uint64_t>>;

/// Returns whether any two computations differ in a tensor rank's word.
bool differ(std::span<const Computed> all, std::size_t tensor_rank, std::size_t place) {
  const auto word = [&](const Computed& one) { return one.words[tensor_rank][place]; };
  return std::ranges::any_of(all,
                             [&](const Computed& one) { return word(one) != word(all.front()); });
}

void find_first_difference(std::span<const Computed> all, Verdict& verdict) {
  const std::size_t tensor_ranks = all.front().words.size();
  const std::size_t places = all.front().words.front().size();
  for (std::size_t place = 0; place < places && verdict.tensor_ranks.empty(); ++place) {
    verdict.place = static_cast<Index>(place);
    for (std::size_t t = 0; t < tensor_ranks; ++t) {
      if (differ(all, t, place)) verdict.tensor_ranks.push_back(static_cast<Index>(t));
    }
  }
}

}  // namespace

Verdict judge(std::span<const Computed> all) {
  Verdict verdict;
  find_first_difference(all, verdict);
  KZERO_EXPECT(!verdict.tensor_ranks.empty());
  std::map<Index, Words> result_of;
  for (const Computed& one : all) {
    const auto [found, is_new] = result_of.try_emplace(one.data_rank, one.words);
    const bool is_known = std::ranges::count(verdict.wrong, one.data_rank) > 0;
    if (!is_new && found->second != one.words && !is_known) verdict.wrong.push_back(one.data_rank);
  }
  if (!verdict.wrong.empty()) {
    verdict.evidence = Evidence::unstable;
    return verdict;
  }
  std::map<Words, std::vector<Index>> ranks_with;
  for (const auto& [rank, words] : result_of) ranks_with[words].push_back(rank);
  const auto majority = std::ranges::max_element(
      ranks_with, {}, [](const auto& entry) { return entry.second.size(); });
  const std::size_t votes = majority->second.size();
  const bool is_decided = std::ranges::count_if(ranks_with, [&](const auto& entry) {
                            return entry.second.size() == votes;
                          }) == 1;
  for (const auto& [rank, words] : result_of) {
    if (!is_decided || words != majority->first) verdict.wrong.push_back(rank);
  }
  if (is_decided) {
    verdict.evidence = Evidence::outvoted;
    verdict.right = majority->second;
  }
  return verdict;
}

}  // namespace kzero::engine

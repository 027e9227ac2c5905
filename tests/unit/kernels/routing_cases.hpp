// Sizes, choices and packed rows for the tests of mixtures of experts.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/philox.hpp"
#include "kernels/routing.hpp"
#include "support/guarded.hpp"

namespace kzero::kernels {

struct RoutingCase {
  Index rows, experts, chosen;

  Index choices() const { return rows * chosen; }
  std::string name() const {
    return std::to_string(rows) + " rows, " + std::to_string(chosen) + " of " +
           std::to_string(experts) + " experts";
  }
};

inline std::vector<RoutingCase> routing_cases() {
  return {{1, 1, 1},   {1, 8, 2},   {7, 5, 3},   {33, 128, 8},
          {65, 60, 4}, {40, 33, 1}, {257, 8, 8}, {521, 16, 2}};
}

/// Choices [n,k] of rows, with what is special about them.
using NamedChoices = std::pair<std::string, std::vector<std::int32_t>>;

/// Each row has k different experts. `of` are the experts that it may choose.
inline std::vector<std::int32_t> draw_choices(const RoutingCase& c, Index first, Index of) {
  std::vector<std::int32_t> choices;
  for (Index i = 0; i < c.rows; ++i) {
    const std::uint32_t word = philox(11, static_cast<std::uint64_t>(i), 0).word[0];
    for (Index j = 0; j < c.chosen; ++j)
      choices.push_back(static_cast<std::int32_t>(first + (word % of + j) % of));
  }
  return choices;
}

inline std::vector<NamedChoices> drawn_choices(const RoutingCase& c) {
  const Index few = std::min(c.experts, c.chosen + 1);
  return {{"any experts", draw_choices(c, 0, c.experts)},
          {"the first experts alone", draw_choices(c, 0, c.chosen)},
          {"the last experts alone", draw_choices(c, c.experts - c.chosen, c.chosen)},
          {"few experts in the middle", draw_choices(c, (c.experts - few) / 2, few)}};
}

enum class Packing { none, documents, all_padding };

/// A chunk of `rows` rows that begins at the second of several sequences of packed documents. Every
/// sequence has documents of 5 rows, of 1 row with a target, of 2 rows, and then padding.
class PackedRows {
 public:
  PackedRows(Index rows, Packing packing) : packing_(packing) {
    const Index all = sequence * (2 + ceil_div(rows, sequence));
    std::vector<std::int32_t> begin, end;
    for (Index row = 0; row < all; ++row) {
      const Document d = document(row % sequence);
      begin.push_back(d.begin), end.push_back(d.end);
    }
    std::vector<Token> targets;
    for (Index i = 0; i < rows; ++i) {
      const Index at = i % sequence;
      targets.push_back(at < 6 && at != 4 && packing != Packing::all_padding ? 3 : no_target);
    }
    begin_.emplace(begin), end_.emplace(end), targets_.emplace(targets);
  }

  CountedRows counted() const {
    const Documents documents{begin_->vector(), end_->vector()};
    return {packing_ == Packing::none ? Documents{} : documents,
            targets_->vector(),
            {sequence, sequence}};
  }
  bool counts(Index i) const {
    if (packing_ == Packing::none) return true;
    return packing_ == Packing::documents && i % sequence < 8;
  }

 private:
  static constexpr Index sequence = 13;
  struct Document {
    std::int32_t begin, end;
  };

  Document document(Index at) const {
    const auto single = static_cast<std::int32_t>(at);
    if (packing_ != Packing::all_padding) {
      if (at < 5) return {0, 5};
      if (at == 6 || at == 7) return {6, 8};
    }
    return {single, single + 1};
  }

  Packing packing_;
  std::optional<tests::Guarded<std::int32_t>> begin_, end_;
  std::optional<tests::Guarded<Token>> targets_;
};

}  // namespace kzero::kernels

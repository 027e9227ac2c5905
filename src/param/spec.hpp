// Describes a model's parameters before any of them exists: names, shapes, initial weights, and the
// part of each that a tensor-parallel rank holds. This is all that model/ and zero/ both know of
// parameters.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::param {

enum class Init { zeros, ones, constant, normal, uniform };

/// The part of a parameter that is local to one tensor-parallel rank. The parameter's elements, in
/// row-major order, form blocks of `stride`. The rank holds `length` elements of each block,
/// starting at `begin`, and stores them contiguously.
struct Split {
  Index blocks = 1;
  Index stride = 0;
  Index begin = 0;
  Index length = 0;
  Index copy = 0;  // ranks before this one that hold the same part

  Index held() const { return blocks * length; }
  /// True if the rank holds every element. In a split over more than one rank, this is true on no
  /// rank or on rank 0 only.
  bool is_full() const { return length == stride; }
  /// True on the one tensor rank that counts and saves a part which several ranks hold.
  bool is_owned_by(Index rank) const { return is_full() ? rank == 0 : copy == 0; }

  /// Calls f(in_local, in_parameter, count) for each contiguous run of local elements [first, first
  /// + count), in ascending order.
  template <class F>
  void for_each_run(Index first, Index count, F&& f) const {
    for (Index at = first, end = first + count; at < end;) {
      const Index inside = at % length;
      const Index run =
          is_full() ? end - at : (length - inside < end - at ? length - inside : end - at);
      f(at, at / length * stride + begin + inside, run);
      at += run;
    }
  }
};

struct ParamSpec {
  std::string name;          // as in Hugging Face's files; GPT-2's without "transformer."
  std::vector<Index> shape;  // of the full parameter, row-major
  Init init = Init::zeros;
  double std = 0;       // of Init::normal; the value of Init::constant; the bound of Init::uniform
  bool decays = false;  // weight decay applies: tensors of two or more dimensions
  Split split = full(shape);
  /// The number of hidden matrices (maps between hidden vectors of the model) that a parameter of
  /// two dimensions stores, side by side in equal parts of its columns. 0 for all other parameters:
  /// embeddings, positions, the head, norms, biases.
  Index matrices = 0;
  /// True for the biases of a router, [experts]: not their gradients change them, which are zeros,
  /// but how often experts were chosen (engine/router_balance.hpp).
  bool follows_choices = false;
  Index group = -1;     // the table of [[optimizer.group]] that sets its rates; -1: none
  double lr_scale = 1;  // factor on the learning rate, but not on decay, because of its width (muP)

  Index elements() const { return split.blocks * split.stride; }
  /// The number of elements local to this tensor-parallel rank.
  Index held() const { return split.held(); }

  bool is_matrix() const { return matrices > 0; }
  /// Rows and columns of each of its matrices.
  Index matrix_rows() const { return shape[0]; }
  Index matrix_columns() const { return shape[1] / matrices; }

  static Split full(const std::vector<Index>& shape) {
    Index elements = 1;
    for (const Index extent : shape) elements *= extent;
    return {1, elements, 0, elements};
  }
};

/// Parameters that are gathered, reduced and released as one.
struct UnitSpec {
  std::string name;
  std::vector<ParamSpec> params;
  /// False if the parameters are frozen: they have no gradients and no optimizer state.
  bool trains = true;
  /// Elements after the parameters that kernels may read but that must not affect a result. The
  /// layout has room for at least as many zeros there.
  Index zeros = 0;

  Index elements() const {
    Index sum = 0;
    for (const ParamSpec& p : params) sum += p.elements();
    return sum;
  }
};

/// The local parameters of one tensor-parallel rank: all units of the model in forward order.
using Table = std::vector<UnitSpec>;

/// The number of parameters of the full model, over all tensor-parallel ranks.
inline Index elements_of(const Table& table) {
  Index sum = 0;
  for (const UnitSpec& unit : table) sum += unit.elements();
  return sum;
}

/// The same units, in which the frozen ones have no parameters.
inline Table trained_of(Table table) {
  for (UnitSpec& unit : table) {
    if (unit.trains) continue;
    unit.params.clear();
    unit.zeros = 0;
  }
  return table;
}

/// The units of the model itself: those that are frozen, or all if none are.
inline Table base_of(Table table) {
  const auto trains = [](const UnitSpec& unit) { return unit.trains; };
  if (!std::ranges::all_of(table, trains)) std::erase_if(table, trains);
  return table;
}

}  // namespace kzero::param

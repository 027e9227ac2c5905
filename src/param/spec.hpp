// What a model's parameters are, before any of them exists: names, shapes, first values, and which
// part of each a tensor-parallel rank holds. This is all that model/ and zero/ both know of
// parameters.
#pragma once

#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::param {

enum class Init { zeros, ones, normal };

/// The part of a parameter that one tensor-parallel rank holds. The parameter's elements,
/// row-major, fall into blocks of `stride`; of each block the rank holds `length` elements from
/// `begin`, and it keeps them one behind the other.
struct Split {
  Index blocks = 1;
  Index stride = 0;
  Index begin = 0;
  Index length = 0;

  Index held() const { return blocks * length; }
  /// Of a parameter that is cut over more than one rank this holds on none, or on rank 0 alone.
  bool is_full() const { return length == stride; }

  /// f(in_held, in_parameter, count) for each contiguous run of held elements [first, first +
  /// count), ascending.
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
  std::string name;          // Hugging Face GPT-2 name, without "transformer."
  std::vector<Index> shape;  // of the whole parameter, row-major; linear weights are [in, out]
  Init init = Init::zeros;
  double std = 0;       // of Init::normal
  bool decays = false;  // weight decay acts on it: tensors of two or more dimensions
  Split split = full(shape);

  Index elements() const { return split.blocks * split.stride; }
  /// Of them, what this tensor-parallel rank holds.
  Index held() const { return split.held(); }

  static Split full(const std::vector<Index>& shape) {
    Index elements = 1;
    for (const Index extent : shape) elements *= extent;
    return {1, elements, 0, elements};
  }
};

/// Parameters that are gathered, reduced and released together.
struct UnitSpec {
  std::string name;
  std::vector<ParamSpec> params;

  Index elements() const {
    Index sum = 0;
    for (const ParamSpec& p : params) sum += p.elements();
    return sum;
  }
};

/// All units of a model as one tensor-parallel rank holds them, in forward order.
using Table = std::vector<UnitSpec>;

/// Of the whole model, on all tensor-parallel ranks together.
inline Index elements_of(const Table& table) {
  Index sum = 0;
  for (const UnitSpec& unit : table) sum += unit.elements();
  return sum;
}

}  // namespace kzero::param

// What a model's parameters are, before any of them exists: names, shapes, first values. This is
// all that model/ and zero/ both know of parameters.
#pragma once

#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::param {

enum class Init { zeros, ones, normal };

struct ParamSpec {
  std::string name;          // Hugging Face GPT-2 name, without "transformer."
  std::vector<Index> shape;  // global, row-major; linear weights are [in, out]
  Init init = Init::zeros;
  double std = 0;       // of Init::normal
  bool decays = false;  // weight decay acts on it: tensors of two or more dimensions

  Index elements() const {
    Index product = 1;
    for (const Index extent : shape) product *= extent;
    return product;
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

/// All units of a model, in forward order.
using Table = std::vector<UnitSpec>;

inline Index elements_of(const Table& table) {
  Index sum = 0;
  for (const UnitSpec& unit : table) sum += unit.elements();
  return sum;
}

}  // namespace kzero::param

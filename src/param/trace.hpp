// One micro-batch as a model runs it, known before any memory exists: operations in order, and the
// versioned values that each reads and writes. Who gathers parameters ahead of use, reduces
// gradients and lays out memory follows this and nothing else (arXiv 1910.02054, section 7.2.2: the
// dynamic communication schedule).
#pragma once

#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::param {

enum class ValueKind { parameters, gradient, activation };

/// Parameters and gradients are named by their unit; version 0 is what a micro-batch starts with.
struct Value {
  ValueKind kind = ValueKind::activation;
  Index unit = -1;   // of parameters and gradients
  std::string name;  // of activations
  Index version = 0;

  bool operator==(const Value&) const = default;
};

enum class Pass { forward, loss, backward };

/// Unit `unit` run in one direction; Pass::loss is the last unit forward and backward at once.
struct Operation {
  Pass pass = Pass::forward;
  Index unit = 0;
  std::vector<Value> reads, writes;
};

using Trace = std::vector<Operation>;

/// Units among `values` of the given kind, in their order.
inline std::vector<Index> units_of(const std::vector<Value>& values, ValueKind kind) {
  std::vector<Index> units;
  for (const Value& value : values) {
    if (value.kind == kind) units.push_back(value.unit);
  }
  return units;
}

}  // namespace kzero::param

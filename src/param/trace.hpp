// One micro-batch as a model runs it, known before any memory exists: operations in order, and the
// versioned values that each reads and writes. The gather schedule, the reductions and the memory
// offsets are derived from this trace alone (arXiv 1910.02054, section 7.2.2: the dynamic
// communication schedule).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace kzero::param {

enum class ValueKind { parameters, gradient, activation };

/// A versioned value. Parameters and gradients are named by their unit. Version 0 is the value with
/// which a micro-batch starts.
struct Value {
  ValueKind kind = ValueKind::activation;
  Index unit = -1;   // of parameters and gradients
  std::string name;  // of activations
  Index version = 0;

  bool operator==(const Value&) const = default;
};

enum class Pass { forward, loss, backward };

constexpr std::string_view name_of(Pass pass) {
  constexpr std::string_view names[] = {"forward", "loss", "backward"};
  return names[static_cast<int>(pass)];
}

/// The arithmetic of an operation per token, over all tensor ranks.
struct OperationWork {
  double operations = 0;           // of products and attention, without recomputation
  double recomputed = 0;           // of those that run again
  double recomputed_elements = 0;  // that elementwise passes read and write again
  double kept = 0;                 // elements that are copied to the host or back
};

/// One operation: unit `unit` run in one direction. Pass::loss runs the last unit forward and
/// backward in one operation.
struct Operation {
  Pass pass = Pass::forward;
  Index unit = 0;
  std::vector<Value> reads, writes;
  OperationWork work{};
};

using Trace = std::vector<Operation>;

/// Returns the units among `values` of the given kind, in their order.
inline std::vector<Index> units_of(const std::vector<Value>& values, ValueKind kind) {
  std::vector<Index> units;
  for (const Value& value : values) {
    if (value.kind == kind) units.push_back(value.unit);
  }
  return units;
}

}  // namespace kzero::param

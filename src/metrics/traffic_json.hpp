// A row of traffic as JSON, for metrics files and plans.
#pragma once

#include <nlohmann/json.hpp>

#include "metrics/records.hpp"

namespace kzero::metrics {

inline nlohmann::ordered_json as_json(const TrafficRow& row) {
  return {{"group", row.group},
          {"operation", row.operation},
          {"purpose", row.purpose},
          {"elements_per_step", row.elements_per_step},
          {"bytes_per_step", row.bytes_per_step},
          {"expected_elements_per_step", row.expected_elements_per_step},
          {"bytes_between_nodes_per_step", row.bytes_between_nodes_per_step},
          {"expected_bytes_between_nodes_per_step", row.expected_bytes_between_nodes_per_step}};
}

}  // namespace kzero::metrics

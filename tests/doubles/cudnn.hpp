// The stand-in for cuDNN's attention on host memory, as tests see it.
#pragma once

#include <cudnn_frontend.h>

#include <map>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::tests {

/// A graph as it was built: its tensors by name, and its options.
struct RecordedGraph {
  bool is_backward = false, is_causal = false, is_deterministic = false;
  bool stores_scores = true;
  float scale = 0;
  std::map<std::string, cudnn_frontend::graph::Tensor_attributes> tensors{};
  Index calls = 0;  // executed
};

struct CudnnDouble {
  Index handles = 0;                                     // alive
  std::vector<std::shared_ptr<RecordedGraph>> graphs{};  // in the order in which they were made
  Index more_workspace = 0;   // bytes that plans need in addition to those known of cuDNN's
  std::string unsupported{};  // why no graph is supported; empty: they are
  std::string thrown{};       // what the frontend throws when a graph is described; empty: nothing
  bool breaks_start = false, breaks_execution = false;
};

CudnnDouble& cudnn();

}  // namespace kzero::tests

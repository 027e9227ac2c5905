// Part of a kzero that is linked with the stand-in for cuBLASLt. Its heuristic does not prefer the
// fastest algorithm.
#include "doubles/cublaslt.hpp"
#include "doubles/cuda_runtime.hpp"

namespace kzero::tests {

namespace {

[[maybe_unused]] const bool has_choice = [] {
  doubles::set_calls(doubles::Calls::at_once);
  cublaslt().algorithms = {{{7, 20, 1, 0, 0, 0, 36, 0, 0}, 1.0},
                           {{66, 21, 1, 0, 1, 0, 36, 0, 2}, 0.75}};
  return true;
}();

}  // namespace

}  // namespace kzero::tests

#include "engine/arithmetic.hpp"

#include <fmt/format.h>

#include "runtime/build_facts.hpp"
#include "runtime/execution.hpp"
#include "tensor/gemm.hpp"

namespace kzero::engine {

std::string arithmetic_of(const tensor::Gemm& gemm, const std::string& model) {
  const std::string device = runtime::device_kind();
  return fmt::format("{}, {}, {}{}{}", runtime::kernel_arithmetic(),
                     device.empty() ? runtime::Execution::name() : device, gemm.arithmetic(),
                     model.empty() ? "" : ", ", model);
}

}  // namespace kzero::engine

#include "tensor/gemm.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "tensor/gemm_backends.hpp"

namespace kzero::tensor {

std::unique_ptr<Gemm> make_gemm(Backend backend) {
  const auto present = backends();
  if (std::find(present.begin(), present.end(), backend) == present.end()) {
    std::string names;
    for (const Backend other : present)
      names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", name_of(other));
    fail(ExitCode::usage, "run.gemm: this build has no \"{}\"; it computes on {} and has {}",
         name_of(backend), Execution::name(), names);
  }
  return make_backend(backend);
}

}  // namespace kzero::tensor

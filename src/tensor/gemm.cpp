#include "tensor/gemm.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "tensor/gemm_backends.hpp"

namespace kzero::tensor {

std::vector<GemmBackend> backends() {
  std::vector<GemmBackend> names;
  for (const BackendEntry& entry : backend_table()) names.push_back(entry.name);
  return names;
}

std::unique_ptr<Gemm> make_gemm(GemmBackend backend) {
  const auto table = backend_table();
  if (backend == GemmBackend::automatic) return table.front().make();
  const auto found = std::ranges::find(table, backend, &BackendEntry::name);
  if (found != table.end()) return found->make();
  std::string names;
  for (const BackendEntry& entry : table)
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", name_of(entry.name));
  fail(ExitCode::usage, "run.gemm: this build has no \"{}\"; it computes on {} and has {}",
       name_of(backend), Execution::name(), names);
}

}  // namespace kzero::tensor

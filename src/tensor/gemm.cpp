#include "tensor/gemm.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "runtime/profile.hpp"
#include "tensor/gemm_backends.hpp"

namespace kzero::tensor {

namespace {

/// Reports each GEMM to Kokkos' tools and to the time line, as a region named by type, shape and
/// transposes.
class ProfiledGemm : public Gemm {
 public:
  explicit ProfiledGemm(std::unique_ptr<Gemm> inner) : inner_(std::move(inner)) {}

  void run(const Execution& exec, const GemmProblem& p) override {
    const auto letter = [](const Operand& o) { return o.transpose == Transpose::no ? 'N' : 'T'; };
    const runtime::ProfileRegion region(
        [&] {
          return SpanName("{} {} {} {} {} {}{}", "kzero::tensor::multiply_matrices", name_of(p.in),
                          p.m, p.n, p.k, letter(p.a), letter(p.b));
        },
        SpanKind::product, {.operations = 2 * p.m * p.n * p.k});
    inner_->run(exec, p);
    if (!on_host && region.is_recorded()) exec.fence("kzero::tensor::product_done");
  }
  std::string arithmetic() const override { return inner_->arithmetic(); }
  bool fuses_gelu_gradient(Dtype type, Index n) const override {
    return inner_->fuses_gelu_gradient(type, n);
  }
  void use_workspace(void* data, Index bytes) override { inner_->use_workspace(data, bytes); }
  AlgorithmChoice* algorithms() override { return inner_->algorithms(); }

 private:
  std::unique_ptr<Gemm> inner_;
};

std::unique_ptr<Gemm> made(const BackendEntry& entry) {
  return std::make_unique<ProfiledGemm>(entry.make());
}

}  // namespace

std::vector<GemmBackend> backends() {
  std::vector<GemmBackend> names;
  for (const BackendEntry& entry : backend_table()) names.push_back(entry.name);
  return names;
}

std::unique_ptr<Gemm> make_gemm(GemmBackend backend) {
  const auto table = backend_table();
  if (backend == GemmBackend::automatic) return made(table.front());
  const auto found = std::ranges::find(table, backend, &BackendEntry::name);
  if (found != table.end()) return made(*found);
  std::string names;
  for (const BackendEntry& entry : table)
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", name_of(entry.name));
  fail(ExitCode::usage, "run.gemm: this build has no \"{}\"; it computes on {} and has {}",
       name_of(backend), Execution::name(), names);
}

}  // namespace kzero::tensor

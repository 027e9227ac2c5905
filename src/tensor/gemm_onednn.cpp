#include <dnnl.h>

#include <dnnl.hpp>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/processor.hpp"
#include "tensor/gemm_backends.hpp"
#include "tensor/onednn_sets.hpp"
#include "tensor/onednn_sgemm.hpp"

namespace kzero::tensor {

namespace {

void add_dnnl_product(Transpose ta, Transpose tb, Index m, Index n, Index k, const float* a,
                      Index lda, const float* b, Index ldb, float* c, Index ldc) {
  onednn_sgemm(m, n, k, {a, lda, ta}, {b, ldb, tb}, 1, c, ldc);
}

/// The key of a bf16 primitive: everything that it depends on.
using Key =
    std::tuple<Index, Index, Index, Index, Index, Index, Transpose, Transpose, Dtype, bool, bool>;

Key key_of(const GemmProblem& p) {
  return {p.m,
          p.n,
          p.k,
          p.a.stride,
          p.b.stride,
          p.c_stride,
          p.a.transpose,
          p.b.transpose,
          p.out,
          p.bias != nullptr,
          p.addend != nullptr || p.accumulate == Accumulate::yes};
}

/// Sets C = addend, to which the primitive's sum post-op then adds.
void copy_addend(const Execution& exec, const GemmProblem& p) {
  const auto* from = static_cast<const bf16*>(p.addend);
  auto* to = static_cast<bf16*>(p.c);
  const Index n = p.n, stride = p.c_stride;
  Kokkos::parallel_for(
      "kzero::tensor::copy_addend", Range(exec, 0, p.m), KOKKOS_LAMBDA(Index i) {
        for (Index j = 0; j < n; ++j) to[i * stride + j] = from[i * n + j];
      });
}

dnnl::memory::desc describe(Index rows, Index columns, const Operand& x) {
  const dnnl::memory::dims strides = x.transpose == Transpose::no ? dnnl::memory::dims{x.stride, 1}
                                                                  : dnnl::memory::dims{1, x.stride};
  return {{rows, columns}, dnnl::memory::data_type::bf16, strides};
}

/// bf16 primitives by key: oneDNN compiles each once.
struct Primitives {
  struct Entry {
    dnnl::matmul matmul;
    dnnl::memory a, b, c, bias;
    std::vector<dnnl_exec_arg_t> arguments;
  };

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<Key, Entry> entries;

  Entry& entry(const GemmProblem& p) {
    const auto found = entries.find(key_of(p));
    return found != entries.end() ? found->second
                                  : entries.emplace(key_of(p), make(p)).first->second;
  }

  Entry make(const GemmProblem& p) const {
    const auto a = describe(p.m, p.k, p.a);
    const auto b = describe(p.k, p.n, p.b);
    const auto out =
        p.out == Dtype::fp32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
    const dnnl::memory::desc c({p.m, p.n}, out, dnnl::memory::dims{p.c_stride, 1});
    const dnnl::memory::desc bias({1, p.n}, dnnl::memory::data_type::bf16,
                                  dnnl::memory::dims{p.n, 1});
    dnnl::primitive_attr attributes;
    if (p.addend || p.accumulate == Accumulate::yes) {
      dnnl::post_ops sum;
      sum.append_sum(1.0F);
      attributes.set_post_ops(sum);
    }
#if DNNL_VERSION_MAJOR >= 3
    const auto descriptor = p.bias ? dnnl::matmul::primitive_desc(engine, a, b, bias, c, attributes)
                                   : dnnl::matmul::primitive_desc(engine, a, b, c, attributes);
#else
    const auto descriptor = dnnl::matmul::primitive_desc(
        p.bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c), attributes,
        engine);
#endif
    Entry e{dnnl::matmul(descriptor), {a, engine, nullptr},    {b, engine, nullptr},
            {c, engine, nullptr},     {bias, engine, nullptr}, {}};
    e.arguments = {
        {DNNL_ARG_SRC, e.a.get()}, {DNNL_ARG_WEIGHTS, e.b.get()}, {DNNL_ARG_DST, e.c.get()}};
    if (p.bias) e.arguments.push_back({DNNL_ARG_BIAS, e.bias.get()});
    return e;
  }
};

/// Returns whether the processor has bf16 products that are faster than fp32's. Without them,
/// oneDNN 2's matmul reaches a fifth of the speed of its sgemm.
bool multiplies_bf16() {
  const unsigned set = onednn_set();
  return has_amx(set) || (has_avx512_bf16(set) && !pairs_are_slow());
}

/// fp32 through oneDNN's sgemm. bf16 through its matmul primitives if multiplies_bf16(), otherwise
/// widened to fp32. fp16 is always widened to fp32.
class OneDnnGemm : public Gemm {
 public:
  void run(const Execution& exec, const GemmProblem& product) override;
  std::string arithmetic() const override;

 private:
  bool multiplies_bf16_ = multiplies_bf16();
  Primitives primitives_;
  BlockedGemm blocked_{&add_dnnl_product};
};

void OneDnnGemm::run(const Execution& exec, const GemmProblem& p) {
  if (p.in == Dtype::fp16 || (p.in == Dtype::bf16 && !multiplies_bf16_))
    return blocked_.run(exec, p);
  if (p.in == Dtype::fp32 && packs_slowly(p.a)) return blocked_.run(exec, p);
  if (p.in == Dtype::fp32) {
    const bool adds = p.bias || p.addend || p.accumulate == Accumulate::yes;
    if (adds) prepare_output(exec, p);
    exec.fence("kzero::tensor::operands_ready");
    return onednn_sgemm(p.m, p.n, p.k, p.a, p.b, adds ? 1 : 0, static_cast<float*>(p.c),
                        p.c_stride);
  }
  if (p.addend) copy_addend(exec, p);
  exec.fence("kzero::tensor::operands_ready");
  Primitives::Entry& e = primitives_.entry(p);
  e.a.set_data_handle(const_cast<void*>(p.a.data));
  e.b.set_data_handle(const_cast<void*>(p.b.data));
  e.c.set_data_handle(p.c);
  if (p.bias) e.bias.set_data_handle(const_cast<void*>(p.bias));
  const dnnl_status_t status =
      dnnl_primitive_execute(e.matmul.get(), primitives_.stream.get(),
                             static_cast<int>(e.arguments.size()), e.arguments.data());
  KZERO_REQUIRE(status == dnnl_success, ExitCode::other,
                "oneDNN's matmul failed with status {} for {} x {} x {}", static_cast<int>(status),
                p.m, p.n, p.k);
  primitives_.stream.wait();
}

// oneDNN chooses its code by the processor.
std::string OneDnnGemm::arithmetic() const {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{} for {}{}", version->major, version->minor, version->patch,
                     name_of_set(onednn_set()), multiplies_bf16_ ? "" : ", bf16 widened");
}

}  // namespace

std::unique_ptr<Gemm> make_onednn() { return make<OneDnnGemm>(); }

}  // namespace kzero::tensor

// Matrix products of one training step: through kzero's call, and through the libraries directly.
// The runs alternate and the fastest of each counts, so that what else the machine does hits all
// alike.
//
//   gemm_benchmark [repeats]      OMP_NUM_THREADS is 1 unless set
//
// Forward has its bias where the library call takes one; the plain sgemm calls have none, so their
// ratio includes kzero's pass over the output for the bias.
#include <dnnl.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <dnnl.hpp>
#include <functional>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/philox.hpp"
#include "runtime/session.hpp"
#include "tensor/gemm.hpp"

extern "C" void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*,
                       const float*, const int*, const float*, const int*, const float*, float*,
                       const int*);

namespace {

using namespace kzero;
using tensor::Transpose;

struct Shape {
  std::string name;
  Index m, n, k;
  Transpose a, b;
  bool bias;
};

struct Model {
  const char* name;
  Index rows, width, vocab, head_rows;  // head_rows: of a chunk of logits
};

constexpr Model models[] = {{"tiny", 2048, 256, 256, 2048},
                            {"small30m", 2048, 512, 8192, 512},
                            {"gpt2-124m", 1024, 768, 50257, 256}};

std::vector<Shape> shapes_of(const Model& m) {
  std::vector<Shape> shapes;
  const auto linear = [&](const char* name, Index in, Index out) {
    const std::string text = fmt::format("{} {}x{}", name, in, out);
    shapes.push_back({text + " forward", m.rows, out, in, Transpose::no, Transpose::no, true});
    shapes.push_back({text + " dX", m.rows, in, out, Transpose::no, Transpose::yes, false});
    shapes.push_back({text + " dW", in, out, m.rows, Transpose::yes, Transpose::no, false});
  };
  linear("qkv", m.width, 3 * m.width);
  linear("projection", m.width, m.width);
  linear("expand", m.width, 4 * m.width);
  linear("contract", 4 * m.width, m.width);
  const std::string head = fmt::format("head {}x{}", m.width, m.vocab);
  shapes.push_back(
      {head + " forward", m.head_rows, m.vocab, m.width, Transpose::no, Transpose::yes, false});
  shapes.push_back(
      {head + " dX", m.head_rows, m.width, m.vocab, Transpose::no, Transpose::no, false});
  shapes.push_back(
      {head + " dW", m.vocab, m.width, m.head_rows, Transpose::yes, Transpose::no, false});
  return shapes;
}

template <class T>
std::vector<T> numbers(Index count, std::uint64_t seed) {
  std::vector<T> values(count);
  for (Index i = 0; i < count; ++i) {
    const std::uint32_t word = philox(seed, static_cast<std::uint64_t>(i), 0).word[0];
    values[i] = static_cast<T>(static_cast<float>(word) * 0x1p-31F - 1.0F);
  }
  return values;
}

/// Operands of one shape, and everything that can multiply them.
template <class T>
class Bench {
 public:
  explicit Bench(const Shape& shape)
      : s_(shape),
        a_(numbers<T>(s_.m * s_.k, 1)),
        b_(numbers<T>(s_.k * s_.n, 2)),
        bias_(numbers<T>(s_.n, 3)),
        c_(s_.m * s_.n),
        a_stride_(s_.a == Transpose::no ? s_.k : s_.m),
        b_stride_(s_.b == Transpose::no ? s_.n : s_.k) {}

  std::function<void()> kzero(tensor::Gemm& gemm) {
    tensor::GemmProblem p;
    p.m = s_.m, p.n = s_.n, p.k = s_.k;
    p.a = {a_.data(), a_stride_, s_.a}, p.b = {b_.data(), b_stride_, s_.b};
    p.c = c_.data(), p.c_stride = s_.n;
    p.in = p.out = dtype_of<T>;
    p.bias = s_.bias ? bias_.data() : nullptr;
    return [&gemm, p] { gemm.run({}, p); };
  }

  std::function<void()> matmul() {
    constexpr auto type =
        dtype_of<T> == Dtype::fp32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
    const auto describe = [](Index rows, Index columns, Index stride, Transpose t) {
      const dnnl::memory::dims strides =
          t == Transpose::no ? dnnl::memory::dims{stride, 1} : dnnl::memory::dims{1, stride};
      return dnnl::memory::desc({rows, columns}, type, strides);
    };
    const auto a = describe(s_.m, s_.k, a_stride_, s_.a), b = describe(s_.k, s_.n, b_stride_, s_.b);
    const auto c = describe(s_.m, s_.n, s_.n, Transpose::no),
               bias = describe(1, s_.n, s_.n, Transpose::no);
#if DNNL_VERSION_MAJOR >= 3
    const auto descriptor = s_.bias ? dnnl::matmul::primitive_desc(engine_, a, b, bias, c)
                                    : dnnl::matmul::primitive_desc(engine_, a, b, c);
#else
    const auto descriptor = dnnl::matmul::primitive_desc(
        s_.bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c), engine_);
#endif
    std::unordered_map<int, dnnl::memory> arguments{{DNNL_ARG_SRC, {a, engine_, a_.data()}},
                                                    {DNNL_ARG_WEIGHTS, {b, engine_, b_.data()}},
                                                    {DNNL_ARG_DST, {c, engine_, c_.data()}}};
    if (s_.bias) arguments.insert({DNNL_ARG_BIAS, {bias, engine_, bias_.data()}});
    return [this, arguments, primitive = dnnl::matmul(descriptor)] {
      primitive.execute(stream_, arguments);
      stream_.wait();
    };
  }

  std::function<void()> onednn_sgemm() {
    return [this] {
      dnnl_sgemm(letter(s_.a), letter(s_.b), s_.m, s_.n, s_.k, 1, a_.data(), a_stride_, b_.data(),
                 b_stride_, 0, c_.data(), s_.n);
    };
  }

  std::function<void()> blas_sgemm() {
    return [this] {
      const char ta = letter(s_.a), tb = letter(s_.b);
      const int m = static_cast<int>(s_.m), n = static_cast<int>(s_.n), k = static_cast<int>(s_.k);
      const int lda = static_cast<int>(a_stride_), ldb = static_cast<int>(b_stride_);
      const float one = 1, zero = 0;
      sgemm_(&tb, &ta, &n, &m, &k, &one, b_.data(), &ldb, a_.data(), &lda, &zero, c_.data(), &n);
    };
  }

 private:
  static char letter(Transpose t) { return t == Transpose::no ? 'N' : 'T'; }

  Shape s_;
  std::vector<T> a_, b_, bias_, c_;
  Index a_stride_, b_stride_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
};

struct Options {
  int repeats;
  Index threads;
};

struct Contender {
  const char* name;
  std::function<void()> run;
  double seconds = std::numeric_limits<double>::infinity();
};

/// Of one thread the time it had a core counts, whatever else the machine does; of several that of
/// the clock.
double now(Index threads) {
  timespec time;
  clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Times all of them, in turn.
void measure(std::vector<Contender>& contenders, const Options& options) {
  for (auto& c : contenders) c.run();  // first touch and code generation
  for (int r = 0; r < options.repeats; ++r) {
    for (auto& c : contenders) {
      const double begin = now(options.threads);
      c.run();
      c.seconds = std::min(c.seconds, now(options.threads) - begin);
    }
  }
}

/// contenders[0] is kzero's; prints GFLOP/s of all and kzero's speed over each. Adds seconds to
/// `totals`.
void report(const Shape& s, const std::vector<Contender>& contenders, std::vector<double>& totals) {
  const double work =
      2e-9 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  fmt::print("  {:<26}", s.name);
  totals.resize(contenders.size());
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const auto& c = contenders[i];
    totals[i] += c.seconds;
    fmt::print("  {} {:7.1f}", c.name, work / c.seconds);
    if (i > 0) fmt::print(" ({:.3f})", c.seconds / contenders[0].seconds);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

void print_totals(const std::vector<double>& totals) {
  fmt::print("  {:<26}", "all");
  for (std::size_t i = 1; i < totals.size(); ++i) fmt::print("  {:.3f}", totals[i] / totals[0]);
  fmt::print("\n");
}

void run_model(const Model& model, const Options& options) {
  const auto onednn = tensor::make_gemm(deck::GemmBackend::onednn),
             blas = tensor::make_gemm(deck::GemmBackend::blas);
  std::vector<double> by_onednn, by_blas, by_bf16;
  fmt::print("{}: GFLOP/s (kzero's speed over the library's)\n", model.name);
  for (const Shape& shape : shapes_of(model)) {
    Bench<float> bench(shape);
    std::vector<Contender> one{{"fp32 onednn", bench.kzero(*onednn)},
                               {"matmul", bench.matmul()},
                               {"dnnl_sgemm", bench.onednn_sgemm()}};
    measure(one, options);
    report(shape, one, by_onednn);
    std::vector<Contender> two{{"fp32 blas  ", bench.kzero(*blas)}, {"sgemm ", bench.blas_sgemm()}};
    measure(two, options);
    report(shape, two, by_blas);
    Bench<bf16> narrow(shape);
    std::vector<Contender> three{{"bf16 onednn", narrow.kzero(*onednn)}};
    try {
      three.push_back({"matmul", narrow.matmul()});
    } catch (const dnnl::error& e) {
      if (e.status != dnnl_unimplemented) throw;  // oneDNN 2 needs AVX-512 for bf16
    }
    measure(three, options);
    report(shape, three, by_bf16);
  }
  print_totals(by_onednn);
  print_totals(by_blas);
  print_totals(by_bf16);
}

}  // namespace

int main(int argc, char** argv) {
  if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    setenv("OMP_NUM_THREADS", "1", 1);  // libraries read it as they load: start again
    execv("/proc/self/exe", argv);
  }
  const runtime::Session session({.threads = 0});
  const Options options{argc > 1 ? std::atoi(argv[1]) : 7, session.threads()};
  for (const Model& model : models) run_model(model, options);
  return 0;
}

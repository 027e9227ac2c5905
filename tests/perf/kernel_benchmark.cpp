// All kernels except matrix products, one by one: attention's rate by the operations that its mask
// leaves, the others' bytes a second compared with a copy's. The fastest of several counts.
//
//   kernel_benchmark [repeats]              OMP_NUM_THREADS is 1 unless set
//   kernel_benchmark [repeats] documents    attention alone, by the length of packed documents
//   kernel_benchmark [repeats] windows      attention alone, by the window; see compare_windows.py
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <vector>

#include "kernels/attention/backends.hpp"
#include "kernels/expert_products.hpp"
#include "kernels/expert_rows.hpp"
#include "kernels/gated.hpp"
#include "kernels/gelu.hpp"
#include "kernels/initialize.hpp"
#include "kernels/norm.hpp"
#include "kernels/routing.hpp"
#include "kernels/row_sums.hpp"
#include "kernels/softmax_cross_entropy.hpp"
#include "runtime/session.hpp"

namespace {

using namespace kzero;
using tensor::Matrix;
using tensor::Vector;

/// Devices need larger arrays, or launches take most of the time.
constexpr bool on_device = !tensor::on_host;

/// A matrix of normally distributed numbers, or vectors of a row each.
template <class T>
class Numbers {
 public:
  Numbers(Index rows, Index columns)
      : values_("kzero::tests::numbers", rows * columns), rows_(rows), columns_(columns) {
    const Kokkos::View<float*> drawn("kzero::tests::drawn", rows * columns);
    const Vector<float> numbers(drawn.data(), drawn.extent(0));
    kernels::draw_normal({}, 1, 2, {0, rows * columns, 0, rows * columns}, 1.0F, numbers);
    kernels::round_to<T>({}, numbers, {values_.data(), values_.extent(0)});
  }

  Matrix<T> matrix() const { return {values_.data(), extent(rows_), extent(columns_)}; }
  Vector<T> row(Index i) const { return {values_.data() + i * columns_, extent(columns_)}; }

 private:
  static std::size_t extent(Index n) { return static_cast<std::size_t>(n); }

  Kokkos::View<T*> values_;
  Index rows_, columns_;
};

class Clock {
 public:
  explicit Clock(int repeats) : repeats_(repeats) {}

  template <class F>
  double fastest(const F& call) const {
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < repeats_; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      call();
      Kokkos::fence("kzero::tests::kernel");
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
      best = std::min(best, passed.count());
    }
    return best;
  }

 private:
  int repeats_;
};

/// Prints a kernel over `count` elements, of which each call reads and writes so many bytes.
void print_row(const char* name, double seconds, Index count, double bytes, double copy_rate) {
  const double rate = static_cast<double>(count) * bytes / seconds;
  fmt::print("  {:<28}{:>8.3f} ms{:>8.3f} ns/element{:>8.1f} GB/s{:>6.2f} of copy\n", name,
             seconds * 1e3, seconds * 1e9 / static_cast<double>(count), rate * 1e-9,
             rate / copy_rate);
}

template <class T>
void measure_rows(const Clock& clock, double copy_rate) {
  constexpr Index rows = on_device ? 32768 : 2048, hidden = on_device ? 768 : 512,
                  wide = 4 * hidden, vocab = on_device ? 50304 : 8192,
                  chunk = on_device ? 4096 : 512;
  const tensor::Execution exec;
  const Numbers<T> x(rows, wide), y(rows, wide), narrow(rows, hidden), dy(rows, hidden),
      dx(rows, hidden), parameters(4, hidden), sums(1, wide), dlogits(chunk, vocab);
  const Numbers<float> statistics(2, rows), logits(chunk, vocab), losses(1, chunk),
      partial(kernels::row_groups, 2 * wide);
  const Kokkos::View<Token*> targets("kzero::tests::targets", chunk);
  const Matrix<const T> in = x.matrix();
  const auto row = [&](const char* name, Index count, double bytes, const auto& call) {
    print_row(name, clock.fastest(call), count, bytes, copy_rate);
  };
  row("gelu_forward", rows * wide, 2 * sizeof(T),
      [&] { kernels::gelu_forward<T>(exec, in, y.matrix()); });
  row("gelu_backward", rows * wide, 3 * sizeof(T),
      [&] { kernels::gelu_backward<T>(exec, in, y.matrix()); });
  row("swiglu_forward", rows * wide / 2, 3 * sizeof(T),
      [&] { kernels::swiglu_forward<T>(exec, in, Matrix<T>(y.matrix().data(), rows, wide / 2)); });
  row("geglu_forward", rows * wide / 2, 3 * sizeof(T),
      [&] { kernels::geglu_forward<T>(exec, in, Matrix<T>(y.matrix().data(), rows, wide / 2)); });
  row("layernorm_forward", rows * hidden, 2 * sizeof(T), [&] {
    kernels::layernorm_forward<T>(exec, narrow.matrix(), parameters.row(0), parameters.row(1),
                                  1e-5F, dx.matrix(), statistics.row(0), statistics.row(1));
  });
  row("layernorm_backward", rows * hidden, 4 * sizeof(T), [&] {
    kernels::layernorm_backward<T>(
        exec, {narrow.matrix(), parameters.row(0), statistics.row(0), statistics.row(1)},
        dy.matrix(),
        {dx.matrix(), tensor::Accumulate::yes, parameters.row(2), parameters.row(3),
         tensor::Accumulate::no},
        partial.matrix());
  });
  row("sum_rows", rows * wide, sizeof(T), [&] {
    kernels::sum_rows<T>(exec, in, tensor::Accumulate::no, sums.row(0), partial.matrix());
  });
  row("cross_entropy_with_gradient", chunk * vocab, 4 + sizeof(T), [&] {
    kernels::CrossEntropyRows::with_gradient<T>(exec, logits.matrix(), {targets.data(), chunk},
                                                {1.0F}, losses.row(0), dlogits.matrix());
  });
}

/// The experts' part of a layer: rows choose k of E experts of width f.
struct ExpertSizes {
  Index rows, hidden, experts, chosen, width;
};

/// What a router leaves, for random logits.
class RoutedRows {
 public:
  explicit RoutedRows(const ExpertSizes& s)
      : sizes_(s),
        logits_(s.rows, s.experts),
        gates_(s.rows, s.chosen),
        integers_("kzero::tests::routed", 2 * s.rows * s.chosen + s.experts + 1 + room()) {}

  kernels::Choices choices() const { return {integers(0), gates_.matrix()}; }
  kernels::SortedChoices sorted() const {
    std::int32_t* const rest = integers_.data() + 2 * sizes_.rows * sizes_.chosen;
    return {integers(sizes_.rows * sizes_.chosen),
            {rest, extent(room())},
            {rest + room(), extent(sizes_.experts + 1)}};
  }
  void choose() const {
    kernels::choose_experts<float>({}, logits_.matrix(), {}, nullptr, choices());
  }
  void sort() const { kernels::sort_choices({}, choices().experts, sorted()); }
  Matrix<const float> logits() const { return logits_.matrix(); }
  Index room() const {
    return kernels::max_sorted_rows(sizes_.rows, sizes_.experts, sizes_.chosen);
  }
  std::vector<std::int32_t> begin() const {
    std::vector<std::int32_t> host(sizes_.experts + 1);
    const Kokkos::View<std::int32_t*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> to(host.data(),
                                                                                     host.size());
    Kokkos::deep_copy(to, sorted().begin);
    return host;
  }

 private:
  static std::size_t extent(Index n) { return static_cast<std::size_t>(n); }
  Matrix<std::int32_t> integers(Index first) const {
    return {integers_.data() + first, extent(sizes_.rows), extent(sizes_.chosen)};
  }

  ExpertSizes sizes_;
  Numbers<float> logits_, gates_;
  Kokkos::View<std::int32_t*> integers_;
};

/// The first products of all experts, by kernels/expert_products.hpp, and the gradient of the
/// weights.
template <class T>
double measure_products(const Clock& clock, const ExpertSizes& s, const RoutedRows& routed,
                        Matrix<const T> sorted) {
  const std::vector<std::int32_t> begin = routed.begin();
  const Numbers<T> weights(s.experts * s.width, s.hidden), y(begin.back(), s.width);
  std::vector<kernels::ExpertRows<const T>> parts;
  std::vector<kernels::ExpertRows<T>> gradients;
  for (Index e = 0; e < s.experts; ++e) {
    T* const weight = weights.matrix().data() + e * s.width * s.hidden;
    parts.push_back({begin[e], begin[e + 1] - begin[e], weight});
    gradients.push_back({begin[e], begin[e + 1] - begin[e], weight});
  }
  const auto gemm = tensor::make_gemm(tensor::GemmBackend::automatic);
  const double product = clock.fastest([&] {
    kernels::expert_products<T>({}, *gemm, parts, {s.width, s.hidden}, tensor::Transpose::yes,
                                sorted, y.matrix());
  });
  const double gradient = clock.fastest([&] {
    kernels::expert_gradients<T, T>({}, *gemm, gradients, {s.width, s.hidden}, y.matrix(), sorted,
                                    tensor::Accumulate::no);
  });
  const double operations = 2 * static_cast<double>(begin.back() * s.width * s.hidden);
  fmt::print(
      "  expert_products {:>8.3f} ms {:>6.1f} GFLOP/s   expert_gradients {:>8.3f} ms {:>6.1f} "
      "GFLOP/s\n",
      product * 1e3, operations / product * 1e-9, gradient * 1e3, operations / gradient * 1e-9);
  return product;
}

template <class T>
void measure_experts(const Clock& clock, double copy_rate, const ExpertSizes& s) {
  fmt::print("  {} rows of {}, {} of {} experts of width {}\n", s.rows, s.hidden, s.chosen,
             s.experts, s.width);
  const tensor::Execution exec;
  const RoutedRows routed(s);
  const double choosing = clock.fastest([&] { routed.choose(); });
  const double sorting = clock.fastest([&] { routed.sort(); });
  const Index used = routed.begin().back();
  const Numbers<T> x(s.rows, s.hidden), sorted(used, s.hidden), activated(used, s.width / 2),
      d(used, s.width);
  const Numbers<float> dgates(s.rows, s.chosen);
  const Kokkos::View<std::int32_t*> counts("kzero::tests::counts", s.experts);
  const Numbers<T> dlogits(s.rows, s.experts);
  const kernels::CountedRows all({}, {}, {});
  const double counting = clock.fastest([&] {
    kernels::count_choices(exec, routed.choices().experts, all, {counts.data(), counts.extent(0)});
  });
  const double gradient = clock.fastest([&] {
    kernels::router_backward<T>(exec, routed.logits(), routed.choices(), dgates.matrix(), {}, {},
                                all, Vector<const std::int32_t>(counts.data(), counts.extent(0)),
                                {0.01F, 0.001F}, dlogits.matrix());
  });
  const auto row = [&](const char* name, Index count, double bytes, const auto& call) {
    const double seconds = clock.fastest(call);
    print_row(name, seconds, count, bytes, copy_rate);
    return seconds;
  };
  const double gathering = row("gather_rows", used * s.hidden, 2 * sizeof(T), [&] {
    kernels::gather_rows<T>(exec, x.matrix(), routed.sorted().choices, s.chosen, sorted.matrix());
  });
  const double combining = row("combine_rows", (used + 2 * s.rows) * s.hidden, sizeof(T), [&] {
    kernels::combine_rows<T>(exec, sorted.matrix(), routed.sorted().places, routed.choices().gates,
                             x.matrix(), x.matrix());
  });
  row("gate_backward", used * s.width / 2, 4 * sizeof(T), [&] {
    kernels::gate_backward<T>(exec, routed.sorted().choices, routed.choices().gates,
                              activated.matrix(), d.matrix(), dgates.matrix());
  });
  const double product = measure_products<T>(clock, s, routed, sorted.matrix());
  fmt::print(
      "  choose {:.3f} ms, sort {:.3f}, count {:.3f}, router_backward {:.3f}; forward without "
      "products {:.1f} % of them\n",
      choosing * 1e3, sorting * 1e3, counting * 1e3, gradient * 1e3,
      (choosing + sorting + counting + gathering + combining) / (1.5 * product) * 100);
}

/// Documents of equal length in every sequence, the last as long as there is room, or one document
/// in which a row sees a window.
class EqualDocuments {
 public:
  static EqualDocuments in_window(const kernels::AttentionShape& s, Index window) {
    EqualDocuments rows(s, s.sequence);
    kernels::window_of({}, {}, window, s.sequence, {rows.begin_.data(), rows.begin_.extent(0)},
                       {rows.end_.data(), rows.end_.extent(0)});
    return rows;
  }
  EqualDocuments(const kernels::AttentionShape& s, Index length)
      : begin_("kzero::tests::begin", s.batch * s.sequence),
        end_("kzero::tests::end", s.batch * s.sequence) {
    const auto begin = Kokkos::create_mirror_view(begin_), end = Kokkos::create_mirror_view(end_);
    for (Index i = 0; i < s.batch * s.sequence; ++i) {
      const Index first = i % s.sequence / length * length;
      begin(i) = static_cast<std::int32_t>(first);
      end(i) = static_cast<std::int32_t>(std::min(first + length, s.sequence));
    }
    Kokkos::deep_copy(begin_, begin);
    Kokkos::deep_copy(end_, end);
  }

  kernels::Documents view() const {
    return {{begin_.data(), begin_.extent(0)}, {end_.data(), end_.extent(0)}};
  }

 private:
  Kokkos::View<std::int32_t*> begin_, end_;
};

struct AttentionSeconds {
  double forward, backward;
};

/// The seconds of fastest(call) for forward and for backward, on so many threads.
template <class T, class Clock>
AttentionSeconds attention_seconds(const Clock& clock, const kernels::AttentionShape& s,
                                   const kernels::Documents& documents, Index threads = 1) {
  const Index rows = s.batch * s.sequence;
  const tensor::Execution exec;
  const Numbers<T> qkv(rows, s.qkv_width()), out(rows, s.width()), dout(rows, s.width()),
      gradient(rows, s.qkv_width());
  const Numbers<float> log_sum(s.batch * s.heads, s.sequence);
  const Index stride = s.qkv_width();
  const auto attention =
      kernels::attention_backends<T>().back().make({s, dtype_of<T>, stride, stride, stride});
  const Index bytes = attention->scratch_bytes(threads);
  const Numbers<float> scratch(1, bytes / static_cast<Index>(sizeof(float)));
  attention->start(scratch.row(0));
  const auto in = kernels::operands_in(Matrix<const T>(qkv.matrix()), s);
  const double forward = clock.fastest(
      [&] { attention->forward(exec, in, documents, out.matrix(), log_sum.matrix()); });
  const double backward = clock.fastest([&] {
    attention->backward(exec, in, documents, out.matrix(), log_sum.matrix(), dout.matrix(),
                        kernels::operands_in(gradient.matrix(), s));
  });
  return {forward, backward};
}

template <class T>
void measure_attention(const Clock& clock, const kernels::AttentionShape& s) {
  const auto [forward, backward] = attention_seconds<T>(clock, s, {});
  // Two products forward and five backward, half of which the mask leaves.
  const double product =
      static_cast<double>(s.batch * s.sequence * s.heads * s.sequence * s.head_width);
  fmt::print(
      "  attention, width {:>3}, T {:>4}   forward {:>7.3f} ms {:>6.1f} GFLOP/s   backward "
      "{:>7.3f} ms {:>6.1f} GFLOP/s\n",
      s.head_width, s.sequence, forward * 1e3, 2 * product / forward * 1e-9, backward * 1e3,
      5 * product / backward * 1e-9);
}

/// The share of the causal mask's tiles, of 96 queries and 64 keys as on hosts, that documents of
/// equal length leave out.
double skipped_tiles(Index sequence, Index length) {
  constexpr Index queries = 96, keys = 64;
  Index all = 0, kept = 0;
  for (Index first = 0; first < sequence; first += queries) {
    const Index last = std::min(first + queries, sequence) - 1;
    all += last / keys + 1;
    kept += last / keys + 1 - first / length * length / keys;
  }
  return 1 - static_cast<double>(kept) / static_cast<double>(all);
}

template <class T>
void measure_documents(const char* precision, int repeats, const kernels::AttentionShape& s) {
  const Clock clock(repeats);
  const AttentionSeconds plain = attention_seconds<T>(clock, s, {});
  fmt::print(
      "{}, width {}, T {}: plain forward {:.3f} ms, backward {:.3f} ms\n"
      "  documents of   tiles skipped   forward of plain   backward of plain\n",
      precision, s.head_width, s.sequence, plain.forward * 1e3, plain.backward * 1e3);
  for (Index length = s.sequence; length >= 16; length /= 2) {
    const EqualDocuments documents(s, length);
    const auto [forward, backward] = attention_seconds<T>(clock, s, documents.view());
    fmt::print("  {:>12}   {:>13.3f}   {:>16.3f}   {:>17.3f}\n", length,
               skipped_tiles(s.sequence, length), forward / plain.forward,
               backward / plain.backward);
  }
}

/// Seconds of the process' threads in user mode, which a busy machine changes little.
class ProcessorClock {
 public:
  explicit ProcessorClock(int repeats) : repeats_(repeats) {}

  template <class F>
  double fastest(const F& call) const {
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < repeats_; ++i) {
      const double begin = now();
      call();
      Kokkos::fence("kzero::tests::kernel");
      best = std::min(best, now() - begin);
    }
    return best;
  }

 private:
  static double now() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_utime.tv_sec) +
           1e-6 * static_cast<double>(used.ru_utime.tv_usec);
  }

  int repeats_;
};

template <class T>
void measure_windows(const char* precision, int repeats) {
  const ProcessorClock clock(repeats);
  const Index threads = tensor::Execution().concurrency();
  for (const Index sequence : {4096, 16384}) {
    for (const Index window : {256, 1024, 4096, 0}) {
      const kernels::AttentionShape s{1, sequence, 8, 8, 64};
      if (window >= sequence) continue;
      const auto rows = EqualDocuments::in_window(s, window);
      const auto [forward, backward] =
          attention_seconds<T>(clock, s, window > 0 ? rows.view() : kernels::Documents{}, threads);
      fmt::print("{} T {:>5} window {:>4}  forward {:>7.3f} s  backward {:>7.3f} s\n", precision,
                 sequence, window, forward, backward);
    }
  }
}

template <class T>
void measure(const char* precision, int repeats, double copy_rate) {
  const Clock clock(repeats);
  fmt::print("{}\n", precision);
  measure_rows<T>(clock, copy_rate);
  measure_experts<T>(clock, copy_rate, {on_device ? 32768 : 2048, 512, 8, 2, 2 * 704});
  measure_experts<T>(clock, copy_rate, {on_device ? 16384 : 1024, 512, 128, 8, 2 * 256});
  if constexpr (on_device) {
    measure_attention<T>(clock, {32, 1024, 12, 12, 64});
    measure_attention<T>(clock, {4, 2048, 32, 8, 64});
    measure_attention<T>(clock, {4, 2048, 16, 16, 128});
  } else {
    measure_attention<T>(clock, {8, 256, 8, 8, 32});
    measure_attention<T>(clock, {4, 512, 8, 8, 64});
    measure_attention<T>(clock, {1, 1024, 12, 12, 64});
  }
}

double copy_bytes_per_second() {
  const Kokkos::View<float*> from("kzero::tests::from", 1 << 26), to("kzero::tests::to", 1 << 26);
  const double seconds = Clock(5).fastest([&] { Kokkos::deep_copy(to, from); });
  return 2 * static_cast<double>(from.size()) * sizeof(float) / seconds;
}

}  // namespace

int main(int argc, char** argv) {
  setenv("OMP_NUM_THREADS", "1", 0);
  const kzero::runtime::Session session({.threads = 0});
  const int repeats = argc > 1 ? std::max(1, std::atoi(argv[1])) : 15;
  if (argc > 2 && std::string_view(argv[2]) == "documents") {
    const kernels::AttentionShape shape{1, 2048, 8, 8, 64};
    measure_documents<float>("fp32", repeats, shape);
    measure_documents<kzero::bf16>("bf16", repeats, shape);
    return 0;
  }
  if (argc > 2 && std::string_view(argv[2]) == "windows") {
    measure_windows<float>("fp32", repeats);
    measure_windows<kzero::bf16>("bf16", repeats);
    return 0;
  }
  const double copy_rate = copy_bytes_per_second();
  fmt::print("copy {:.1f} GB/s\n", copy_rate * 1e-9);
  measure<float>("fp32", repeats, copy_rate);
  measure<kzero::bf16>("bf16", repeats, copy_rate);
}

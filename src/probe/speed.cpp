#include "probe/speed.hpp"

#include <algorithm>
#include <chrono>
#include <string>

#include "engine/arithmetic.hpp"
#include "kernels/initialize.hpp"
#include "probe/links.hpp"

namespace kzero::probe {

namespace {

constexpr int rounds = 3;
constexpr double round_seconds = 0.3;

/// Returns the calls of `run` per second in the best of several rounds. Every rank calls it at
/// least once in a round. Collective over `world`.
template <class Run>
double best_rate(const grid::Group& world, const Run& run) {
  using Clock = std::chrono::steady_clock;
  run();  // the first call touches cold pages
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    wait_for_all(world);
    const auto begin = Clock::now();
    double seconds = 0, times = 0;
    while (seconds < round_seconds) {
      run();
      ++times;
      seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    }
    best = std::max(best, times / seconds);
  }
  return best;
}

double measure_operations(const grid::Group& world, const tensor::Execution& exec,
                          tensor::Gemm& gemm, Dtype precision) {
  const Index size = engine::choose_peak_width(world, exec, gemm, precision);
  const engine::Product product(exec, {size, size, size}, precision);
  return product.operations() * best_rate(world, [&] {
           product.run(gemm);
           exec.fence("kzero::probe::product_done");
         });
}

using Array = Kokkos::View<float*, tensor::Memory>;

void triad(const tensor::Execution& exec, const Array& a, const Array& b, const Array& c) {
  Kokkos::parallel_for(
      "kzero::probe::triad", tensor::Range(exec, 0, a.extent_int(0)),
      KOKKOS_LAMBDA(const Index i) { a(i) = b(i) + 0.5F * c(i); });
  exec.fence("kzero::probe::triad_done");
}

/// STREAM's triad (McCalpin, 1995), whose bytes are counted as there.
double measure_memory(const grid::Group& world, const tensor::Execution& exec, Index threads) {
  constexpr Index min_bytes = Index{32} << 20, max_bytes = Index{512} << 20;
  const Index bytes = tensor::on_host ? std::clamp(threads << 23, min_bytes, max_bytes) : max_bytes;
  const Index count = bytes / static_cast<Index>(sizeof(float));
  const auto array = [&](const std::string& label) {
    return Array(Kokkos::view_alloc(Kokkos::WithoutInitializing, label), count);
  };
  const auto a = array("kzero::probe::triad_a"), b = array("kzero::probe::triad_b"),
             c = array("kzero::probe::triad_c");
  for (const auto& each : {a, b, c})
    kernels::fill<float>(exec, tensor::Vector<float>(each.data(), count), 1);
  return 3 * static_cast<double>(bytes) * best_rate(world, [&] { triad(exec, a, b, c); });
}

}  // namespace

Speed measure_speed(const grid::Group& world, tensor::Gemm& gemm, Dtype precision, Index threads) {
  const tensor::Execution exec;
  Speed speed;
  speed.operations = measure_operations(world, exec, gemm, precision);
  speed.memory_bytes = measure_memory(world, exec, threads);
  return speed;
}

}  // namespace kzero::probe

// Muon's update of a deck's model: its passes, its exchange with Newton-Schulz, and the products
// of Newton-Schulz alone, all on each rank. The fastest of each counts. A rank with one thread is
// timed by what it had of a core, so that other work on the machine does not show; waiting for
// other ranks shows as far as it polls.
//
//   [mpiexec -n RANKS] muon_benchmark DECK [key=value ...]      OMP_NUM_THREADS is 1 unless set
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "comm/backends.hpp"
#include "comm/placement.hpp"
#include "deck/reader.hpp"
#include "engine/blueprint.hpp"
#include "engine/matrix_exchange.hpp"
#include "grid/process_grid.hpp"
#include "kernels/initialize.hpp"
#include "optim/optimizer.hpp"
#include "optim/place.hpp"
#include "runtime/session.hpp"
#include "zero/state_buffer.hpp"

namespace {

using namespace kzero;
using memory::Category;

constexpr int repeats = 3;

/// Of one thread the time it had a core counts, whatever else the machine does; of several that of
/// the clock.
double now(Index threads) {
  timespec time{};
  clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// The seconds of the slowest rank, the fastest of some times.
template <class F>
double seconds_of(const grid::Group& world, const F& f) {
  const Index threads = Kokkos::DefaultHostExecutionSpace().concurrency();
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i <= repeats; ++i) {
    world.barrier();
    const double begin = now(threads);
    f();
    Kokkos::fence("kzero::tests::benchmark");
    double slowest = 0;
    for (const double taken : world.all_gather(now(threads) - begin))
      slowest = std::max(slowest, taken);
    if (i > 0) best = std::min(best, slowest);
  }
  return best;
}

/// The memory of an update.
template <class T>
struct Memory {
  Memory(memory::Arenas& arenas, const engine::Blueprint& b, Index rank, comm::Overlap overlap)
      : gradients(arenas, Category::gradients, b.layout, b.stage.optimizer),
        parameters(arenas, Category::parameters, b.layout, b.stage.optimizer),
        exchange(arenas, b.matrices, deck::Polynomials::jordan, rank, overlap) {
    for (const param::StateArray& array : b.state_arrays())
      state.emplace_back(arenas, Category::optimizer, b.table, b.layout, array,
                         zero::StatePlacement{b.stage.optimizer, rank});
  }

  optim::State state_of(Index u) const {
    optim::State of_unit;
    for (const zero::StateBuffer& array : state) {
      if (const param::CompactRange* range = array.range(u)) {
        of_unit.add(array.unit(u), *range);
      } else {
        of_unit.add(array.unit(u));
      }
    }
    return of_unit;
  }

  zero::FlatBuffer<T> gradients, parameters;
  std::vector<zero::StateBuffer> state;
  engine::MatrixExchange<T> exchange;
};

/// The three products of a step, five times, of every matrix.
template <class T>
void multiply_all(const engine::MatrixPlan& plan, tensor::Gemm& gemm) {
  static std::vector<T> x(static_cast<std::size_t>(1) << 24, T(0.01F)), a(x), square(x);
  static std::vector<float> sum(x.size());
  using tensor::Transpose;
  for (const engine::MatrixParameter& p : plan.parameters()) {
    const Index s = p.shape.shorter(), rows = p.shape.rows, columns = p.shape.columns;
    const bool wide = s == rows;
    const tensor::GemmProblem first{.m = s,
                                    .n = s,
                                    .k = rows * columns / s,
                                    .a = {x.data(), columns, wide ? Transpose::no : Transpose::yes},
                                    .b = {x.data(), columns, wide ? Transpose::yes : Transpose::no},
                                    .c = a.data(),
                                    .c_stride = s,
                                    .in = dtype_of<T>,
                                    .out = dtype_of<T>};
    tensor::GemmProblem second = first, third = first;
    second.k = s;
    second.a = second.b = {a.data(), s, Transpose::no};
    second.c = sum.data(), second.out = Dtype::fp32;
    third.m = rows, third.n = columns, third.k = s;
    const tensor::Operand of_x{x.data(), columns, Transpose::no};
    third.a = wide ? second.a : of_x, third.b = wide ? of_x : second.a;
    third.c = sum.data(), third.c_stride = columns, third.out = Dtype::fp32;
    third.accumulate = tensor::Accumulate::yes;
    for (Index i = 0; i < 5 * p.matrices; ++i) {
      for (const auto& product : {first, second, third}) gemm.run({}, product);
    }
  }
}

template <class T>
void run(const deck::Config& config) {
  const grid::ProcessGrid grid(config.grid.data, config.grid.tensor);
  engine::Machinery machinery(config, 1, grid);
  tensor::Gemm& gemm = *machinery.gemm;
  const engine::Blueprint b(config, grid.data().size(), engine::tensor_rank(grid));
  const Index rank = grid.data().rank();
  const memory::Arenas measured = memory::measured(
      [&](memory::Arenas& arenas) { Memory<T>(arenas, b, rank, comm::overlap_of(config)); });
  memory::Arenas arenas(measured, machinery.ledger);
  Memory<T> memory(arenas, b, rank, comm::overlap_of(config));
  for (Index i = 0; i < memory.gradients.elements(); ++i)
    memory.gradients.data()[i] = static_cast<T>(static_cast<float>(i % 97 - 48) * 1e-3F);
  for (const auto& array : memory.state)
    kernels::fill<float>({}, {array.data(), static_cast<std::size_t>(array.elements())}, 0.01F);

  const optim::Update update{.lr = 1e-3};
  const auto shares = [&](const auto& f) {
    for (Index u = 0; u < std::ssize(b.table); ++u) {
      const param::UnitLayout& layout = b.layout.unit(u);
      const zero::Range held = zero::held(b.stage.optimizer, layout, rank);
      f(optim::Share<T>{.spec = &b.table[u],
                        .layout = &layout,
                        .begin = held.begin,
                        .end = held.end,
                        .gradient = memory.gradients.unit(u),
                        .parameters = memory.parameters.unit(u),
                        .state = memory.state_of(u),
                        .prepared = memory.gradients.unit(u)});
    }
  };
  const tensor::Execution exec;
  const double prepare = seconds_of(grid.world(), [&] {
    shares([&](const auto& share) { b.optimizer->matrix_rule()->prepare(exec, update, share); });
  });
  const double exchange = seconds_of(
      grid.world(), [&] { memory.exchange.run(exec, machinery, memory.gradients.units(), 1); });
  const double apply = seconds_of(grid.world(), [&] {
    shares([&](const auto& share) { b.optimizer->update(exec, update, share); });
  });
  const double products = seconds_of(grid.world(), [&] { multiply_all<T>(b.matrices, gemm); });
  if (grid.world().rank() > 0) return;
  double operations = 0;
  for (const engine::MatrixParameter& p : b.matrices.parameters())
    operations += static_cast<double>(p.matrices) * optim::newton_schulz_operations(p.shape);
  const double all = prepare + exchange + apply;
  fmt::print(
      "{} ranks, stage {}, {}: momentum {:.1f} ms, matrices {:.1f} ms, weights {:.1f} ms; all "
      "{:.1f} ms\nall products on one rank {:.1f} ms, {:.1f} GFLOP/s; update / products {:.3f}\n",
      grid.world().size(), config.zero.stage, name_of(config.train.precision), 1e3 * prepare,
      1e3 * exchange, 1e3 * apply, 1e3 * all, 1e3 * products, operations / products / 1e9,
      all / products);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "muon_benchmark DECK [key=value ...]\n");
    return 2;
  }
  setenv("OMP_NUM_THREADS", "1", 0);
  const runtime::Session session(runtime::SessionOptions{});
  std::ifstream file(argv[1]);
  std::stringstream text;
  text << file.rdbuf();
  std::vector<std::string> overrides{"optimizer.kind=muon"};
  overrides.insert(overrides.end(), argv + 2, argv + argc);
  const deck::Config config = deck::read({argv[1], text.str()}, overrides,
                                         deck::Target{session.size(), deck::Purpose::train});
  if (config.train.precision == Dtype::fp32) run<float>(config);
  if (config.train.precision == Dtype::bf16) run<bf16>(config);
  if (config.train.precision == Dtype::fp16) run<fp16>(config);
  return 0;
}

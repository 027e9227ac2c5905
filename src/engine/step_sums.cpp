#include "engine/step_sums.hpp"

#include "runtime/pinned_copy.hpp"

namespace kzero::engine {

namespace {

/// The minimum number of losses, chosen so that validations rarely wait.
constexpr Index min_rounds = 64;

}  // namespace

StepSums::StepSums(memory::Arenas& arenas, Index rounds, Index chunks, Index experts, Index figures)
    : rounds_(std::max(rounds, min_rounds)), chunks_(chunks), experts_(experts), figures_(figures) {
  device_ = arenas.take<std::uint64_t>(memory::Category::io, words());
  host_ =
      tensor::on_host ? device_ : arenas.take<std::uint64_t>(memory::Category::offloaded, words());
  part_ = arenas.take<kernels::ExactSum>(memory::Category::io, 1);
}

void StepSums::clear(const tensor::Execution& exec) const {
  Kokkos::deep_copy(exec, tensor::Vector<std::uint64_t>(device_, static_cast<std::size_t>(words())),
                    0);
}

template <class T>
void StepSums::add_squares(const tensor::Execution& exec,
                           const kernels::SquaresTable<T>& ranges) const {
  kernels::sum_of_squares<T>(exec, ranges, part_);
  kernels::add_exact_sum(exec, part_, sum_of(device_));
}

void StepSums::read(const tensor::Execution& exec) const {
  if (host_ != device_) runtime::copy_to_host(exec, device_, host_, words());
  exec.fence("kzero::engine::step_sums_read");
}

namespace {

/// Adds `count` numbers of each part of a plan, from number `first` of its `width` on.
double sum_of_parts(const data::BatchPlan& plan, std::span<const double> all, Index width,
                    Index first, Index count) {
  const Index rounds = plan.rounds();
  double sum = 0;
  for (Index part = 0; part < plan.parts(); ++part) {
    const data::Turn turn = plan.turn(part);
    for (Index i = 0; i < count; ++i)
      sum += all[(turn.rank * rounds + turn.round) * width + first + i];
  }
  return sum;
}

}  // namespace

double sum_of_losses(const data::BatchPlan& plan, std::span<const double> all, Index width) {
  return sum_of_parts(plan, all, width, 0, plan.own_chunks());
}

double sum_of_chunk_figures(const data::BatchPlan& plan, std::span<const double> all, Index width) {
  return sum_of_parts(plan, all, width, plan.own_chunks(), plan.own_chunks());
}

double sum_of_figure(const data::BatchPlan& plan, std::span<const double> all, Index width,
                     Index figure) {
  return sum_of_parts(plan, all, width, plan.own_chunks() + figure, 1);
}

#define KZERO_INSTANTIATE(T)                                       \
  template void StepSums::add_squares<T>(const tensor::Execution&, \
                                         const kernels::SquaresTable<T>&) const;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::engine

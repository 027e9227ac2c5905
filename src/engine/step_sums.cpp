#include "engine/step_sums.hpp"

#include "runtime/pinned_copy.hpp"

namespace kzero::engine {

namespace {

/// The minimum number of losses, chosen so that validations rarely wait.
constexpr Index min_rounds = 64;

}  // namespace

StepSums::StepSums(memory::Arenas& arenas, Index rounds, Index chunks, Index experts)
    : rounds_(std::max(rounds, min_rounds)), chunks_(chunks), experts_(experts) {
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

double sum_of_losses(const data::BatchPlan& plan, std::span<const double> all) {
  const Index rounds = plan.rounds();
  double sum = 0;
  const Index chunks = plan.own_chunks();
  for (Index part = 0; part < plan.parts(); ++part) {
    const data::Turn turn = plan.turn(part);
    for (Index chunk = 0; chunk < chunks; ++chunk)
      sum += all[(turn.rank * rounds + turn.round) * chunks + chunk];
  }
  return sum;
}

#define KZERO_INSTANTIATE(T)                                       \
  template void StepSums::add_squares<T>(const tensor::Execution&, \
                                         const kernels::SquaresTable<T>&) const;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::engine

#include "engine/matrix_exchange.hpp"

#include "kernels/newton_schulz.hpp"

namespace kzero::engine {

namespace {

using comm::ConstSpan;
using comm::Span;

template <class T>
void copy(const tensor::Execution& exec, const T* from, T* to, Index count) {
  if (count == 0) return;
  const auto extent = static_cast<std::size_t>(count);
  Kokkos::deep_copy(exec, tensor::Vector<T>(to, extent), tensor::Vector<const T>(from, extent));
}

Index count_of(const zero::Range& range) { return range.end - range.begin; }

}  // namespace

template <class T>
MatrixExchange<T>::MatrixExchange(memory::Arenas& arenas, const MatrixPlan& plan,
                                  deck::Polynomials polynomials, Index data_rank,
                                  comm::Overlap overlap)
    : plan_(plan),
      rank_(data_rank),
      slots_(overlap == comm::Overlap::no ? 1 : max_slots),
      iteration_(arenas, plan.shapes(), polynomials) {
  const Index elements = plan.gathered_elements();
  for (Index slot = 0; slot < slots_; ++slot)
    gathered_[slot] = arenas.take<T>(memory::Category::workspace, elements);
  whole_ = arenas.take<T>(memory::Category::workspace, plan.whole_elements());
}

/// Returns the first element of a parameter that this rank holds.
template <class T>
T* MatrixExchange<T>::own(const MatrixParameter& p) const {
  T* unit = units_[p.unit];
  return unit + plan_.first_held(p, rank_);
}

/// Returns this tensor rank's local part of the parameter that tensor rank `tensor_rank` of this
/// data rank computes in `round`.
template <class T>
T* MatrixExchange<T>::local(Index round, Index tensor_rank) const {
  if (!plan_.gathers()) return own(*plan_.at(round, rank_, tensor_rank));
  return gathered_[round % slots_] + plan_.local_begin(round, rank_, tensor_rank);
}

template <class T>
void MatrixExchange<T>::begin_gather(const tensor::Execution& exec, Machinery& m, Index round) {
  if (!plan_.gathers()) return;
  const Index slot = round % slots_;
  m.data->wait(exec, leaving_[slot]);
  for (Index t = 0; t < plan_.tensor_ranks(); ++t) {
    const MatrixParameter* mine = plan_.at(round, rank_, t);
    std::vector<ConstSpan> send;
    std::vector<Span> receive;
    for (Index r = 0; r < plan_.data_ranks(); ++r) {
      const MatrixParameter* theirs = plan_.at(round, r, t);
      send.push_back(theirs ? ConstSpan::of(own(*theirs), count_of(plan_.held(*theirs, rank_)))
                            : ConstSpan::of<T>(nullptr, 0));
      const zero::Range held = mine ? plan_.held(*mine, r) : zero::Range{};
      receive.push_back(mine ? Span::of(local(round, t) + held.begin, count_of(held))
                             : Span::of<T>(nullptr, 0));
    }
    arriving_[slot] = m.data->begin_all_to_all(exec, std::move(send), std::move(receive),
                                               comm::Operation::gather, comm::Purpose::matrices);
  }
}

template <class T>
void MatrixExchange<T>::finish_gather(const tensor::Execution& exec, Machinery& m, Index round) {
  if (!plan_.gathers()) return;
  m.data->wait(exec, arriving_[round % slots_]);
  for (Index t = 0; t < plan_.tensor_ranks(); ++t) {
    const MatrixParameter* p = plan_.at(round, rank_, t);
    if (p == nullptr) continue;
    const zero::Range held = plan_.held(*p, rank_);
    copy<T>(exec, own(*p), local(round, t) + held.begin, count_of(held));
  }
}

/// Sends results back to the data ranks. If each data rank holds complete local parts, all of them
/// receive the result.
template <class T>
void MatrixExchange<T>::begin_return(const tensor::Execution& exec, Machinery& m, Index round) {
  if (plan_.data_ranks() == 1) return;
  const Index slot = round % slots_;
  for (Index t = 0; t < plan_.tensor_ranks(); ++t) {
    const MatrixParameter* mine = plan_.at(round, rank_, t);
    std::vector<ConstSpan> send;
    std::vector<Span> receive;
    for (Index r = 0; r < plan_.data_ranks(); ++r) {
      const zero::Range held = mine ? plan_.held(*mine, r) : zero::Range{};
      send.push_back(mine ? ConstSpan::of(local(round, t) + held.begin, count_of(held))
                          : ConstSpan::of<T>(nullptr, 0));
      const MatrixParameter* theirs = plan_.at(round, r, t);
      receive.push_back(theirs ? Span::of(own(*theirs), count_of(plan_.held(*theirs, rank_)))
                               : Span::of<T>(nullptr, 0));
    }
    if (mine && plan_.gathers()) {
      const zero::Range held = plan_.held(*mine, rank_);
      copy<T>(exec, local(round, t) + held.begin, own(*mine), count_of(held));
    }
    leaving_[slot] = m.data->begin_all_to_all(
        exec, std::move(send), std::move(receive),
        plan_.gathers() ? comm::Operation::scatter : comm::Operation::broadcast,
        comm::Purpose::matrices);
  }
}

/// Gathers the tensor group's local parts of this rank's parameter.
template <class T>
void MatrixExchange<T>::collect(const tensor::Execution& exec, Machinery& m, Index round) {
  if (plan_.tensor_ranks() == 1) return;
  const Index me = plan_.tensor_rank();
  const MatrixParameter* mine = plan_.at(round, rank_, me);
  std::vector<ConstSpan> send;
  std::vector<Span> receive;
  for (Index t = 0; t < plan_.tensor_ranks(); ++t) {
    const MatrixParameter* theirs = plan_.at(round, rank_, t);
    const bool gives = theirs && plan_.source(*theirs, me) == me;
    send.push_back(ConstSpan::of<T>(gives ? local(round, t) : nullptr,
                                    gives ? plan_.local_elements(*theirs, me) : 0));
    const bool takes = mine && plan_.source(*mine, t) == t;
    receive.push_back(Span::of(takes ? whole_ + plan_.offset(*mine, t) : nullptr,
                               takes ? plan_.local_elements(*mine, t) : 0));
  }
  if (mine && plan_.source(*mine, me) == me)
    copy<T>(exec, local(round, me), whole_ + plan_.offset(*mine, me),
            plan_.local_elements(*mine, me));
  m.tensor->all_to_all(exec, std::move(send), std::move(receive), comm::Operation::gather,
                       comm::Purpose::matrices);
}

/// Sends each tensor rank its local part of this rank's result, including ranks that hold copies.
template <class T>
void MatrixExchange<T>::spread(const tensor::Execution& exec, Machinery& m, Index round) {
  if (plan_.tensor_ranks() == 1) return;
  const Index me = plan_.tensor_rank();
  const MatrixParameter* mine = plan_.at(round, rank_, me);
  std::vector<ConstSpan> send;
  std::vector<Span> receive;
  for (Index t = 0; t < plan_.tensor_ranks(); ++t) {
    const MatrixParameter* theirs = plan_.at(round, rank_, t);
    send.push_back(ConstSpan::of<T>(mine ? whole_ + plan_.offset(*mine, t) : nullptr,
                                    mine ? plan_.local_elements(*mine, t) : 0));
    receive.push_back(Span::of(theirs ? local(round, t) : nullptr,
                               theirs ? plan_.local_elements(*theirs, me) : 0));
  }
  if (mine)
    copy<T>(exec, whole_ + plan_.offset(*mine, me), local(round, me),
            plan_.local_elements(*mine, me));
  m.tensor->all_to_all(exec, std::move(send), std::move(receive), comm::Operation::scatter,
                       comm::Purpose::matrices);
}

/// Orthogonalizes the matrices of this rank's parameter in a round.
template <class T>
void MatrixExchange<T>::compute(const tensor::Execution& exec, tensor::Gemm& gemm, Index round,
                                double scale) {
  const Index ranks = plan_.tensor_ranks();
  const MatrixParameter* p = plan_.at(round, rank_, plan_.tensor_rank());
  if (p == nullptr) return;
  T* parts = ranks == 1 ? local(round, 0) : whole_;
  const Index stride = p->shape.columns;
  for (Index m = 0; m < p->matrices; ++m) {
    const auto for_parts = [&](const auto& move) {
      for (Index t = 0; t < ranks; ++t) {
        if (plan_.source(*p, t) != t) continue;
        const MatrixPart part = plan_.part(*p, t, m);
        move(part, kernels::Rectangle<T>{parts + plan_.offset(*p, t) + part.offset, part.stride},
             part.row * stride + part.column);
      }
    };
    for_parts([&](const MatrixPart& part, const kernels::Rectangle<T>& held, Index at) {
      kernels::copy_rectangle<T>(exec, part.rows, part.columns, {held.data, held.stride},
                                 {iteration_.input() + at, stride});
    });
    const T* x = iteration_.run(exec, gemm, p->shape, scale);
    for_parts([&](const MatrixPart& part, const kernels::Rectangle<T>& held, Index at) {
      kernels::copy_rectangle<T>(exec, part.rows, part.columns, {x + at, stride}, held);
    });
  }
}

template <class T>
void MatrixExchange<T>::run(const tensor::Execution& exec, Machinery& m,
                            const std::vector<T*>& units, double scale) {
  units_ = units;
  const bool ahead = slots_ > 1;
  if (ahead && plan_.rounds() > 0) begin_gather(exec, m, 0);
  for (Index round = 0; round < plan_.rounds(); ++round) {
    if (!ahead) begin_gather(exec, m, round);
    finish_gather(exec, m, round);
    if (ahead && round + 1 < plan_.rounds()) begin_gather(exec, m, round + 1);
    collect(exec, m, round);
    compute(exec, *m.gemm, round, scale);
    spread(exec, m, round);
    begin_return(exec, m, round);
  }
  for (comm::Request& request : leaving_) {
    m.data->wait(exec, request);
    request = 0;
  }
}

#define KZERO_INSTANTIATE(T) template class MatrixExchange<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::engine

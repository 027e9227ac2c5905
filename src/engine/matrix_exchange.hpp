// Runs Newton-Schulz on matrices whose parts are on several ranks. Each matrix is gathered on its
// owner, orthogonalized there and sent back. Communication overlaps with other matrices' products.
#pragma once

#include <array>
#include <vector>

#include "comm/backends.hpp"
#include "comm/communicator.hpp"
#include "engine/machinery.hpp"
#include "engine/matrix_plan.hpp"
#include "optim/newton_schulz.hpp"

namespace kzero::engine {

template <class T>
class MatrixExchange {
 public:
  /// Allocates the iteration's workspace, and buffers for matrices that the rank holds only in
  /// part, from the workspace category. The plan must outlive the object.
  MatrixExchange(memory::Arenas& arenas, const MatrixPlan& plan, deck::Polynomials polynomials,
                 Index data_rank, comm::Overlap overlap);

  /// Replaces each hidden matrix in `units` by the result of NewtonSchulz::run() with `scale`.
  /// `units` points to this rank's elements of every unit. Collective over the data and tensor
  /// groups.
  void run(const tensor::Execution& exec, Machinery& m, const std::vector<T*>& units, double scale);

 private:
  static constexpr Index max_slots = 3;  // one arriving, one computed, one leaving

  T* own(const MatrixParameter& p) const;
  T* local(Index round, Index tensor_rank) const;
  void begin_gather(const tensor::Execution& exec, Machinery& m, Index round);
  void finish_gather(const tensor::Execution& exec, Machinery& m, Index round);
  void begin_return(const tensor::Execution& exec, Machinery& m, Index round);
  void collect(const tensor::Execution& exec, Machinery& m, Index round);
  void compute(const tensor::Execution& exec, tensor::Gemm& gemm, Index round, double scale);
  void spread(const tensor::Execution& exec, Machinery& m, Index round);

  const MatrixPlan& plan_;
  Index rank_;  // in the data group
  Index slots_;
  std::array<T*, max_slots> gathered_{};
  T* whole_ = nullptr;
  optim::NewtonSchulz<T> iteration_;
  std::vector<T*> units_;
  std::array<comm::Request, max_slots> arriving_{}, leaving_{};
};

}  // namespace kzero::engine

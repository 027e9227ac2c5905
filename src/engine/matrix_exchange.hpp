// Newton-Schulz on whole matrices that ranks hold in parts: each matrix is gathered to its owner,
// orthogonalized there and sent back, in turns that overlap with the products of others.
#pragma once

#include <array>
#include <vector>

#include "comm/backends.hpp"
#include "engine/machinery.hpp"
#include "engine/matrix_plan.hpp"

namespace kzero::engine {

template <class T>
class MatrixExchange {
 public:
  /// Takes its work space from the workspace category: that of the iteration, and places for
  /// matrices of which the rank holds parts. The plan must outlive the object.
  MatrixExchange(memory::Arenas& arenas, const MatrixPlan& plan, Index data_rank,
                 comm::Overlap overlap);

  /// Replaces each hidden matrix u in `units`, this rank's elements of every unit, by its iterated
  /// X; `scale` as in NewtonSchulz. Collective over the data and the tensor group.
  void run(const tensor::Execution& exec, Machinery& m, const std::vector<T*>& units, double scale);

 private:
  static constexpr Index most_slots = 3;  // one arrives, one is computed, one leaves

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
  std::array<T*, most_slots> gathered_{};
  T* whole_ = nullptr;
  optim::NewtonSchulz<T> iteration_;
  std::vector<T*> units_;
  std::array<comm::Request, most_slots> arriving_{}, leaving_{};
};

}  // namespace kzero::engine

// The norm of a block or head: LayerNorm or RMSNorm, as the shape specifies. Backward follows a
// GEMM whose input gradient is a sum over the tensor group. With sequence parallelism, parameter
// gradients are also sums over the group.
#pragma once

#include "kernels/norm.hpp"
#include "model/activations.hpp"
#include "model/context.hpp"
#include "model/messages.hpp"
#include "model/parameters.hpp"

namespace kzero::model {

/// A norm's parameters [D] or their gradients, contiguous in memory. RMSNorm has no bias, and may
/// have a factor on its result.
template <class T>
struct NormParams {
  Vector<T> weight, bias;
  float factor = 1;
};

/// Returns the parameters of the norm that begins at `first`.
template <class T>
NormParams<T> norm_at(const TransformerShape& shape, T* first) {
  const auto d = static_cast<std::size_t>(shape.hidden);
  return {Vector<T>(first, d),
          Vector<T>(first + d, static_cast<std::size_t>(shape.norm_elements()) - d)};
}

/// Declares `name`.weight, which multiplies by 1 at first, and for LayerNorm `name`.bias, of zeros.
/// Returns where they begin in the unit.
Index declare_norm(Declaration& unit, std::string_view name);

/// Row statistics [n] that backward needs in addition to forward's input. RMSNorm has no mean.
struct NormStatistics {
  Vector<float> mean, rstd;

  NormStatistics() = default;
  NormStatistics(const Vector<float>& means, const Vector<float>& rstds)
      : mean(means), rstd(rstds) {}
  NormStatistics(memory::Arenas& arenas, const TransformerShape& shape, Index rows);
  /// Activations of a half.
  NormStatistics(Activations& memory, bool is_kept, const char* mean_name, const char* rstd_name,
                 const TransformerShape& shape, Index rows);

  /// Those of some rows.
  NormStatistics of(const PartRows& rows) const { return {rows.of(mean), rows.of(rstd)}; }
};

/// Computes y [n,D] and the statistics from x [n,D]. With an addend [n,D], which only RMSNorm may
/// have, y is the sum of both. y may be the addend.
template <class T>
void norm_forward(const Execution& exec, const TransformerShape& shape,
                  const NormParams<const T>& p, Matrix<const T> x, Matrix<T> y,
                  const NormStatistics& statistics, Matrix<const T> addend = {});

/// The results of norm_backward: dx [n,D] and the parameter gradients, empty if the parameters are
/// frozen. `dx_accumulate` and `accumulate` select whether they are overwritten or added to.
/// dx_before and dx_after [D] are kernels::LayerNormGradients', empty unless sums_stream_biases().
template <class T>
struct NormGradients {
  Matrix<T> dx;
  tensor::Accumulate dx_accumulate;
  NormParams<T> parameters;
  tensor::Accumulate accumulate;
  Vector<T> dx_before = {}, dx_after = {};
};

/// dy [n,D] is the gradient of the norm's output, of the local rows of the residual stream, as x
/// and dx are. Collective over the tensor group if it splits them.
template <class T>
void norm_backward_of(const Context<T>& c, const NormParams<const T>& p, Matrix<const T> x,
                      const NormStatistics& statistics, Matrix<const T> dy,
                      const NormGradients<T>& gradients);

/// On entry c.hidden_grad [N,D] holds this rank's partial sum of the gradient of the norm's output.
/// x and dx [n,D] have the local rows of the residual stream. Collective over the tensor group.
template <class T>
void norm_backward(const Context<T>& c, const NormParams<const T>& p, Matrix<const T> x,
                   const NormStatistics& statistics, const NormGradients<T>& gradients);

/// A norm of a half, of its input or of what it adds: its place in the block's unit, and its
/// passes. A family without it has an empty name there. The result is then the input itself.
template <class T>
class HalfNorm {
 public:
  HalfNorm(Declaration& unit, std::string_view name, float factor = 1)
      : shape_(&unit.shape), exists_(!name.empty()), factor_(factor) {
    if (exists_) begin_ = declare_norm(unit, name);
  }

  bool exists() const { return exists_; }

  /// The parameters in a flat unit, or none if it is null.
  template <class U>
  NormParams<U> in(U* unit) const {
    if (unit == nullptr || !exists_) return {};
    NormParams<U> p = norm_at(*shape_, unit + begin_);
    p.factor = factor_;
    return p;
  }

  /// The rows of the result: y, or those of x.
  Matrix<const T> result(Matrix<const T> x, Matrix<T> y) const { return exists_ ? y : x; }

  void forward(const Execution& exec, const T* unit, Matrix<const T> x, Matrix<T> y,
               const NormStatistics& statistics, Matrix<const T> addend = {}) const {
    if (exists_) norm_forward<T>(exec, *shape_, in(unit), x, y, statistics, addend);
  }
  /// Adds the gradient of x to gradients.dx, as norm_backward does, or only that of the result.
  void backward(const Context<T>& c, const T* unit, Matrix<const T> x,
                const NormStatistics& statistics, const NormGradients<T>& gradients) const {
    if (exists_) {
      norm_backward<T>(c, in(unit), x, statistics, gradients);
    } else {
      c.add_stream_sum(c.hidden_grad, gradients.dx);
    }
  }

  void add_gradient_messages(Messages& messages) const {
    messages.sum_stream();
    if (exists_) messages.sum_norm_gradient();
  }

 private:
  const TransformerShape* shape_;
  bool exists_;
  float factor_;
  Index begin_ = 0;
};

}  // namespace kzero::model

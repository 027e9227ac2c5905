// The linear layers of one matrix product of a block: y = x W + b, their adapters, and their place
// in the tensor group (Megatron-LM, arXiv 1909.08053, section 3). The products to q, k and v and
// into the feed-forward part are column-parallel: each rank computes its own columns. Those back to
// the residual stream are row-parallel: their results are summed over the group. W is stored
// [in,out] or transposed, [out,in], as in the family's files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "deck/linear_layers.hpp"
#include "kernels/row_sums.hpp"
#include "model/adapters.hpp"
#include "model/cached_rows.hpp"
#include "model/dropout.hpp"
#include "model/messages.hpp"

namespace kzero::model {

/// A product's parameters or their gradients: W in the shape's layout, and b [out] or empty.
template <class T>
struct LinearParams {
  Matrix<T> weight;
  Vector<T> bias;
};

/// Where backward writes the gradients of a block's layers: the units of a chunk, whose gradients
/// are overwritten or added to, as `accumulate` selects. Frozen parameters have none.
/// With `sums`, those of weights, biases and adapters go there instead, in fp32: the gradient of
/// element i of the block's own unit to sums[i - first], and of adapters at the same places.
template <class T>
struct LayerGradients {
  BlockUnits<T> units;
  tensor::Accumulate accumulate = tensor::Accumulate::no;
  float* sums = nullptr;
  Index first = 0;
};

/// One of several feed-forward parts of a block.
struct FeedForwardPart {
  std::string name;  // see deck::path_in
  Extent width;
};

template <class T>
class Linear {
 public:
  Linear() = default;
  /// Declares the family's layers of the product. Layers that share an input are one product: their
  /// weights are adjacent, then their biases. With `part`, those of that part, which have no
  /// adapters.
  Linear(Declaration& block, deck::Product product,
         const std::optional<FeedForwardPart>& part = {});

  Index in() const { return in_; }
  Index out() const { return out_; }
  Index elements() const { return in_ * out_; }  // of W, of this rank
  /// W's place in the block's unit, which b follows.
  Index begin() const { return begin_; }
  bool has_adapters() const { return !adapters_.empty(); }
  /// Whether anything in the layers trains.
  bool trains() const { return !is_frozen_ || has_adapters(); }

  /// The parameters in a flat unit, or none if it is null.
  template <class U>
  LinearParams<U> in_unit(U* unit) const {
    if (unit == nullptr) return {};
    U* const at = unit + begin_;
    const bool is_in_out = layout_ == WeightLayout::in_out;
    LinearParams<U> p{Matrix<U>(at, is_in_out ? in_ : out_, is_in_out ? out_ : in_), {}};
    if (has_bias_) p.bias = Vector<U>(at + elements(), static_cast<std::size_t>(out_));
    return p;
  }

  /// Computes y [N,out] = x [N,in] W + b, of this rank's columns.
  void forward(const Context<T>& c, const BlockUnits<const T>& p, Matrix<const T> x,
               Matrix<T> y) const;

  /// Computes y [n,D] = addend [n,D] + dropout(x W + b), the end of a half, of the local rows of
  /// the residual stream. Collective over the tensor group, which is where row-parallel layers sum.
  void forward_to_stream(const Context<T>& c, const BlockUnits<const T>& p, Matrix<const T> x,
                         const kernels::Dropout& dropout, Matrix<const T> addend,
                         Matrix<T> y) const;

  /// Computes dW from x [N,in] and dy [N,out].
  void backward_weight(const Context<T>& c, Matrix<const T> x, Matrix<const T> dy,
                       const LayerGradients<T>& g) const;
  /// Computes db, the sum of dy's rows, if there is a bias.
  void backward_bias(const Context<T>& c, Matrix<const T> dy, const LayerGradients<T>& g) const;
  /// Computes dx [N,in] = dy W^T, in the first columns of dx, without adapters.
  void backward_input(const Context<T>& c, const BlockUnits<const T>& p, Matrix<const T> dy,
                      Matrix<T> dx) const;
  /// Computes dx = dy W^T * gelu'(hidden), for x = gelu(hidden [N,in]). dy W^T is rounded before
  /// the last multiplication unless the back end fuses the two.
  void backward_gelu(const Context<T>& c, const BlockUnits<const T>& p, Matrix<const T> dy,
                     Matrix<const T> hidden, Matrix<T> dx) const;
  /// Computes the adapters' gradients, and adds their part to the first columns of dx unless dx is
  /// empty. Collective over the tensor group.
  void backward_adapters(const Context<T>& c, const BlockUnits<const T>& p, Matrix<const T> x,
                         Matrix<const T> dy, const LayerGradients<T>& g, Matrix<T> dx) const;
  /// Rounds the adapters' sums in g.sums to their gradients. Collective over the tensor group.
  void store_adapter_sums(const Context<T>& c, const LayerGradients<T>& g) const;

  /// forward() for the rows of a pass of generation, and forward_to_stream() without dropout.
  void step(const CachedRows<T>& rows, const T* unit, Matrix<const T> x, Matrix<T> y) const;
  void step_to_stream(const CachedRows<T>& rows, const T* unit, Matrix<const T> x,
                      Matrix<const T> addend, Matrix<T> y) const;

  /// Operations per row of this rank's products, in forward and in backward, with or without the
  /// gradient of x. Backward computes `recomputed` operations of forward again.
  double forward_operations() const;
  double backward_operations(bool needs_input) const;
  double recomputed_operations() const;

  /// Adds the sums of gradients over ranks that hold the same parameters.
  void add_gradient_messages(Messages& messages) const;
  /// The elements of the largest gradient that a tensor group sums in one call.
  Index partial_gradient() const;

 private:
  bool is_row_parallel() const {
    return product_ == deck::Product::projection || product_ == deck::Product::down;
  }
  void multiply(const Context<T>& c, Matrix<const T> x, const LinearParams<const T>& layer,
                const T* addend, Matrix<T> y) const;
  void step_product(const CachedRows<T>& rows, const LinearParams<const T>& layer,
                    Matrix<const T> x, const T* addend, Matrix<T> y) const;
  void sum_copies(const Context<T>& c, const T* local, Index width, tensor::Accumulate accumulate,
                  T* gradient) const;

  deck::Product product_ = deck::Product::qkv;
  WeightLayout layout_ = WeightLayout::in_out;
  Index in_ = 0, out_ = 0;  // of this rank
  bool has_bias_ = false, is_frozen_ = false;
  Index begin_ = 0;
  Index copies_ = 1;       // ranks that hold the same columns from own_columns_ on
  Index own_columns_ = 0;  // the columns of the queries
  std::vector<Adapter> adapters_{};
};

/// Computes out (=|+=) a sum in fp32, rounded once.
template <class T>
void store_sum(const Context<T>& c, const float* sum, tensor::Accumulate accumulate,
               const Vector<T>& out);

}  // namespace kzero::model

#include "model/block_parameters.hpp"

namespace kzero::model {

namespace {

/// Returns consecutive ranges of a flat unit.
template <class T>
class Cursor {
 public:
  Cursor(const TransformerShape& shape, T* unit) : shape_(shape), at_(unit) {}

  Vector<T> vector(Index length) {
    const Vector<T> view(at_, length);
    at_ += length;
    return view;
  }

  Norm<T> norm() {
    const Norm<T> norm = norm_at(shape_, at_);
    at_ += shape_.norm_elements();
    return norm;
  }

  Linear<T> linear(Index in, Index out, bool has_bias) {
    const bool is_in_out = shape_.weight_layout == WeightLayout::in_out;
    Linear<T> layer{Matrix<T>(at_, is_in_out ? in : out, is_in_out ? out : in), {}};
    at_ += in * out;
    if (has_bias) layer.bias = vector(out);
    return layer;
  }

 private:
  const TransformerShape& shape_;
  T* at_;
};

}  // namespace

template <class T>
BlockParams<T>::BlockParams(const TransformerShape& s, T* unit, T* adapters_unit)
    : adapters(adapters_unit) {
  Cursor<T> next(s, unit);
  norm1 = next.norm();
  qkv = next.linear(s.hidden, s.own.qkv_width(), s.qkv_bias);
  if (s.qk_norm) {
    q_norm = next.vector(s.head_dim);
    k_norm = next.vector(s.head_dim);
  }
  projection = next.linear(s.own.width, s.hidden, s.biases);
  norm2 = next.norm();
  up = next.linear(s.hidden, s.hidden_columns(), s.biases);
  down = next.linear(s.own.feed_forward, s.hidden, s.biases);
}

#define KZERO_INSTANTIATE(T)      \
  template struct BlockParams<T>; \
  template struct BlockParams<const T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model

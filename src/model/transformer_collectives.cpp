#include "model/transformer_collectives.hpp"

#include "kernels/softmax_cross_entropy.hpp"
#include "model/tensor_group.hpp"
#include "model/transformer_shape.hpp"

namespace kzero::model {

namespace {

/// Counts the sums and gathers of the residual stream in a micro-batch. Recomputation stops before
/// a block's final GEMM. The last block is not recomputed.
struct StreamCollectives {
  Index sums = 0;
  Index gathers = 0;  // with sequence parallelism, where a sum is only a reduce-scatter

  StreamCollectives(Index layers, deck::RecomputeMode mode) {
    const Index again = mode == deck::RecomputeMode::full ? layers - 1 : 0;
    sums = 1 + (2 + 2) * layers + again + 1;         // embedding, blocks, head
    gathers = (2 + 4) * layers + 2 * again + 1 + 1;  // blocks, head, embedding backward
    if (mode == deck::RecomputeMode::feed_forward) gathers += layers - 1;
  }

  /// Removes what frozen parameters do not need: gathers for their gradients, and backward below
  /// the first adapter.
  void freeze(Index layers, const Adapters& adapters) {
    const Site first = adapters.first();
    sums -= first > Site::projection ? 2 : 1;
    gathers -= 1;  // embedding backward
    if (!adapters.has(Site::up)) gathers -= layers;
    if (!adapters.has(Site::qkv)) gathers -= layers;
    if (first > Site::projection) gathers -= 1;  // of the gradient within the first block
  }
};

/// Adds the sums of the gradients of replicated adapters, and of copied heads.
void add_adapters(const TransformerShape& s, Dtype precision, std::vector<ModelCollective>& all) {
  const auto add = [&](Index elements) {
    all.push_back(
        {comm::Operation::all_reduce, comm::Purpose::activations, s.layers, elements, precision});
  };
  for (const AdapterShape& a : s.adapters.layers) {
    const Index width = a.is_row_parallel() ? a.out : a.in;
    add(RowTraffic(s.tensor, s.adapters.rank * width, 1).all_reduced());
    if (a.copies > 1) add((a.copies - 1) * s.adapters.rank * a.out);
  }
}

}  // namespace

std::vector<ModelCollective> transformer_collectives(const deck::Model& m,
                                                     const deck::Recompute& recompute,
                                                     const TensorRank& tensor, Index rows,
                                                     Dtype precision, const deck::Lora& lora) {
  if (tensor.size == 1) return {};
  const TransformerShape shape(m, tensor, lora);
  const RowTraffic stream(tensor, rows, m.hidden);
  StreamCollectives passes(m.layers, recompute.mode);
  if (shape.is_frozen()) passes.freeze(m.layers, shape.adapters);
  // The ranks exchange their partial softmaxes in fp32 for every precision.
  const ModelCollective softmaxes{comm::Operation::all_gather, comm::Purpose::activations, 1,
                                  rows * kernels::partial_softmax_width * (tensor.size - 1),
                                  Dtype::fp32};
  std::vector<ModelCollective> all;
  if (m.sequence_parallel) {
    const RowTraffic norm(tensor, shape.norm_elements(), 1);  // gradients of the parameters
    all = {{comm::Operation::reduce_scatter, comm::Purpose::activations, passes.sums,
            stream.scattered, precision},
           {comm::Operation::all_gather, comm::Purpose::activations, passes.gathers,
            stream.gathered, precision},
           softmaxes};
    if (!shape.is_frozen())
      all.push_back({comm::Operation::all_reduce, comm::Purpose::activations, 2 * m.layers + 1,
                     norm.all_reduced(), precision});
  } else {
    all = {{comm::Operation::all_reduce, comm::Purpose::activations, passes.sums,
            stream.all_reduced(), precision},
           softmaxes};
  }
  if (shape.is_frozen()) add_adapters(shape, precision, all);
  if (shape.qk_norm && !shape.is_frozen()) {
    const RowTraffic norms(tensor, 2 * shape.head_dim, 1);
    all.push_back({comm::Operation::all_reduce, comm::Purpose::activations, m.layers,
                   norms.all_reduced(), precision});
  }
  if (const Index others = shape.own.kv_copies - 1; others > 0 && !shape.is_frozen()) {
    const Index copied = 2 * shape.own.kv_width * (m.hidden + (shape.qkv_bias ? 1 : 0));
    all.push_back({comm::Operation::all_reduce, comm::Purpose::activations, m.layers,
                   others * copied, precision});
  }
  if (recompute.partition) {
    all.push_back({comm::Operation::all_gather, comm::Purpose::checkpointed_activations, m.layers,
                   stream.gathered, precision});
  }
  return all;
}

}  // namespace kzero::model

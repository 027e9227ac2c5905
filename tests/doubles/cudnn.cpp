#include "doubles/cudnn.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/float16.hpp"
#include "doubles/cuda_runtime.hpp"
#include "runtime/cuda_stream.hpp"

struct cudnnContext {
  cudaStream_t stream = nullptr;
  bool has_stream = false;
};

namespace kzero::tests {

CudnnDouble& cudnn() {
  static CudnnDouble all;
  return all;
}

}  // namespace kzero::tests

using kzero::Index;
using kzero::tests::cudnn;

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (cudnn().breaks_start) return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = new cudnnContext;
  ++cudnn().handles;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  --cudnn().handles;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  handle->has_stream = true;
  return CUDNN_STATUS_SUCCESS;
}
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_NOT_INITIALIZED";
}
std::size_t cudnnGetVersion() { return 92700; }

namespace cudnn_frontend::graph {

namespace {

/// A tensor [B,H,T,d] in memory.
struct Elements {
  const Tensor_attributes* tensor;
  void* data;

  Index offset(Index b, Index h, Index t, Index c) const {
    const auto& s = tensor->stride;
    return b * s[0] + h * s[1] + t * s[2] + c * s[3];
  }
  double get(Index b, Index h, Index t, Index c) const {
    const Index at = offset(b, h, t, c);
    if (tensor->type == DataType_t::FLOAT) return static_cast<const float*>(data)[at];
    if (tensor->type == DataType_t::HALF)
      return static_cast<float>(static_cast<const kzero::fp16*>(data)[at]);
    return static_cast<float>(static_cast<const kzero::bf16*>(data)[at]);
  }
  void set(Index b, Index h, Index t, Index c, double value) const {
    const Index at = offset(b, h, t, c);
    const auto rounded = static_cast<float>(value);
    if (tensor->type == DataType_t::FLOAT) {
      static_cast<float*>(data)[at] = rounded;
    } else if (tensor->type == DataType_t::HALF) {
      static_cast<kzero::fp16*>(data)[at] = static_cast<kzero::fp16>(rounded);
    } else {
      static_cast<kzero::bf16*>(data)[at] = static_cast<kzero::bf16>(rounded);
    }
  }
};

Index rounded_up(Index a, Index multiple) { return (a + multiple - 1) / multiple * multiple; }

}  // namespace

struct Graph::Node {
  DataType_t io = DataType_t::NOT_SET, inside = DataType_t::NOT_SET, compute = DataType_t::NOT_SET;
  std::shared_ptr<kzero::tests::RecordedGraph> record =
      std::make_shared<kzero::tests::RecordedGraph>();
  Tensor q, k, v, out, stats, dout, dq, dk, dv;
  bool has_stats = false;
  int stage = 0;  // of the calls that make a plan
  bool forbids_nondeterministic = false;
  Index most_workspace = std::int64_t{1} << 62;

  bool is_backward() const { return record->is_backward; }
  std::vector<Tensor> tensors() const {
    if (is_backward()) return {q, k, v, out, dout, stats, dq, dk, dv};
    return {q, k, v, out, stats};
  }
  std::vector<Tensor> outputs() const {
    return is_backward() ? std::vector<Tensor>{dq, dk, dv} : std::vector<Tensor>{out, stats};
  }

  Index batch() const { return q->dim[0]; }
  Index heads() const { return q->dim[1]; }
  Index length() const { return q->dim[2]; }
  Index width() const { return q->dim[3]; }
  Index key_head(Index head) const { return head / (heads() / k->dim[1]); }
  Index keys_seen(Index row) const { return record->is_causal ? row + 1 : length(); }

  /// Whether the gradients of all scores are stored. If not, dq is added in fp32.
  static bool stores_scores() {
    const char* most = std::getenv("CUDNN_FRONTEND_ATTN_DP_WORKSPACE_LIMIT");
    return most == nullptr || std::string(most) != "0";
  }

  /// The bytes that cuDNN 9.27's plans for sm_90 ask for, and those that the frontend adds.
  Index library_bytes() const { return 256 + cudnn().more_workspace; }
  Index frontend_bytes() const {
    const Index all = batch() * heads(), t = length();
    if (!is_backward()) return 0;
    const Index scores = all * rounded_up(t, 64) * rounded_up(t, 128) * 2;
    const Index of_dq = all * t * width() * 4 + all * rounded_up(t, 64) / 64 * 8;
    const Index of_keys = heads() == k->dim[1] ? 0 : 2 * rounded_up(all * t * width() * 2, 128);
    return all * t * 4 + (record->stores_scores ? scores : of_dq) + of_keys;
  }
  Index workspace() const { return library_bytes() + frontend_bytes(); }

  Elements at(const Tensor& tensor, const std::unordered_map<std::int64_t, void*>& p) const {
    return {tensor.get(), p.at(tensor->uid)};
  }
  double score(const Elements& queries, const Elements& keys, Index b, Index h, Index i,
               Index j) const {
    double sum = 0;
    for (Index c = 0; c < width(); ++c)
      sum += queries.get(b, h, i, c) * keys.get(b, key_head(h), j, c);
    return sum;
  }
  void forward(const std::unordered_map<std::int64_t, void*>& p) const;
  void backward(const std::unordered_map<std::int64_t, void*>& p) const;
};

void Graph::Node::forward(const std::unordered_map<std::int64_t, void*>& p) const {
  const Elements queries = at(q, p), keys = at(k, p), values = at(v, p);
  const Elements results = at(out, p), sums = at(stats, p);
  for (Index b = 0; b < batch(); ++b) {
    for (Index h = 0; h < heads(); ++h) {
      for (Index i = 0; i < length(); ++i) {
        std::vector<double> e;
        for (Index j = 0; j < keys_seen(i); ++j)
          e.push_back(record->scale * score(queries, keys, b, h, i, j));
        const double largest = *std::max_element(e.begin(), e.end());
        double total = 0;
        for (double& x : e) total += x = std::exp(x - largest);
        for (Index c = 0; c < width(); ++c) {
          double sum = 0;
          for (Index j = 0; j < keys_seen(i); ++j) sum += e[j] * values.get(b, key_head(h), j, c);
          results.set(b, h, i, c, sum / total);
        }
        sums.set(b, h, i, 0, largest + std::log(total));
      }
    }
  }
}

void Graph::Node::backward(const std::unordered_map<std::int64_t, void*>& p) const {
  const Elements queries = at(q, p), keys = at(k, p), values = at(v, p), results = at(out, p);
  const Elements slopes = at(dout, p), sums = at(stats, p);
  const Index t = length(), d = width();
  for (Index b = 0; b < batch(); ++b) {
    std::vector<double> of_k(k->dim[1] * t * d), of_v(k->dim[1] * t * d);
    for (Index h = 0; h < heads(); ++h) {
      for (Index i = 0; i < t; ++i) {
        double delta = 0;
        for (Index c = 0; c < d; ++c) delta += results.get(b, h, i, c) * slopes.get(b, h, i, c);
        std::vector<double> of_q(d);
        for (Index j = 0; j < keys_seen(i); ++j) {
          const double probability =
              std::exp(record->scale * score(queries, keys, b, h, i, j) - sums.get(b, h, i, 0));
          const double slope = probability * (score(slopes, values, b, h, i, j) - delta);
          const Index row = (key_head(h) * t + j) * d;
          for (Index c = 0; c < d; ++c) {
            of_q[c] += record->scale * slope * keys.get(b, key_head(h), j, c);
            of_k[row + c] += record->scale * slope * queries.get(b, h, i, c);
            of_v[row + c] += probability * slopes.get(b, h, i, c);
          }
        }
        for (Index c = 0; c < d; ++c) at(dq, p).set(b, h, i, c, of_q[c]);
      }
    }
    for (Index n = 0; n < k->dim[1] * t * d; ++n) {
      at(dk, p).set(b, n / (t * d), n / d % t, n % d, of_k[n]);
      at(dv, p).set(b, n / (t * d), n / d % t, n % d, of_v[n]);
    }
  }
}

Graph& Graph::set_io_data_type(DataType_t type) {
  node_ = std::make_shared<Node>();
  node_->io = type;
  return *this;
}
Graph& Graph::set_intermediate_data_type(DataType_t type) { return node_->inside = type, *this; }
Graph& Graph::set_compute_data_type(DataType_t type) { return node_->compute = type, *this; }

Graph::Tensor Graph::tensor(const Tensor_attributes& attributes) {
  return std::make_shared<Tensor_attributes>(attributes);
}

std::array<Graph::Tensor, 2> Graph::sdpa(Tensor q, Tensor k, Tensor v, SDPA_attributes options) {
  if (!cudnn().thrown.empty()) throw std::runtime_error(cudnn().thrown);
  Node& n = *node_;
  n.q = q, n.k = k, n.v = v;
  n.out = tensor({}), n.stats = tensor({});
  n.has_stats = options.has_stats;
  n.record->is_causal = options.is_causal, n.record->scale = options.scale;
  return {n.out, n.stats};
}

std::array<Graph::Tensor, 3> Graph::sdpa_backward(Tensor q, Tensor k, Tensor v, Tensor o, Tensor dO,
                                                  Tensor stats, SDPA_backward_attributes options) {
  Node& n = *node_;
  n.q = q, n.k = k, n.v = v, n.out = o, n.dout = dO, n.stats = stats;
  n.dq = tensor({}), n.dk = tensor({}), n.dv = tensor({});
  n.has_stats = n.record->is_backward = true;
  n.record->is_causal = options.is_causal, n.record->scale = options.scale;
  n.record->is_deterministic = options.is_deterministic;
  n.record->stores_scores = Node::stores_scores();
  return {n.dq, n.dk, n.dv};
}

error_object Graph::validate() {
  Node& n = *node_;
  EXPECT_EQ(n.stage++, 0);
  EXPECT_TRUE(n.io == DataType_t::HALF || n.io == DataType_t::BFLOAT16);
  EXPECT_TRUE(n.inside == DataType_t::FLOAT && n.compute == DataType_t::FLOAT);
  EXPECT_TRUE(n.has_stats) << "backward needs the log-sum-exp";
  if (!cudnn().unsupported.empty()) return {cudnn().unsupported + "\nand many lines of engines"};
  for (const Tensor& t : n.outputs()) EXPECT_TRUE(t->is_output) << t->name;
  for (const Tensor& t : n.tensors()) {
    if (t->type == DataType_t::NOT_SET) t->type = n.io;
    EXPECT_EQ(t->type == DataType_t::FLOAT, t == n.stats) << t->name;
    if (t->dim.size() != 4 || t->stride.size() != 4) return {t->name + " has no shape"};
    if (t->stride[3] != 1) return {t->name + ": the stride of the last dimension is not 1"};
    EXPECT_TRUE(n.record->tensors.emplace(t->name, *t).second) << t->name << " is there twice";
  }
  const Index rows = n.heads() * n.length();
  if (n.is_backward() && n.stats->stride[0] != rows) return {"log_sum is not contiguous"};
  if (n.width() % 8 != 0 || n.width() > 256) return {"hidden_dim should be multiple of 8"};
  if (n.length() == 1 && n.is_backward()) return {"s_q = s_kv = 1 is not supported."};
  return {};
}

error_object Graph::build_operation_graph(cudnnHandle_t handle) {
  EXPECT_NE(handle, nullptr);
  EXPECT_EQ(node_->stage++, 1);
  return {};
}

error_object Graph::create_execution_plans(const std::vector<HeurMode_t>& modes) {
  EXPECT_EQ(modes, std::vector{HeurMode_t::A});
  EXPECT_EQ(node_->stage++, 2);
  return {};
}

Graph& Graph::deselect_numeric_notes(const std::vector<NumericalNote_t>& notes) {
  node_->forbids_nondeterministic = notes == std::vector{NumericalNote_t::NONDETERMINISTIC};
  return *this;
}

Graph& Graph::deselect_workspace_greater_than(std::int64_t bytes) {
  node_->most_workspace = bytes;
  return *this;
}

error_object Graph::check_support(cudnnHandle_t) {
  Node& n = *node_;
  EXPECT_EQ(n.stage++, 3);
  EXPECT_TRUE(n.forbids_nondeterministic);
  if (n.library_bytes() > n.most_workspace) return {"No execution plans support the graph."};
  if (n.is_backward() && !n.record->is_deterministic && n.forbids_nondeterministic)
    return {"No execution plans support the graph."};
  return {};
}

error_object Graph::build_plans(const cudnnHandle_t&, BuildPlanPolicy_t policy) {
  EXPECT_EQ(policy, BuildPlanPolicy_t::HEURISTICS_CHOICE);
  EXPECT_EQ(node_->stage++, 4);
  cudnn().graphs.push_back(node_->record);
  return {};
}

error_object Graph::get_workspace_size(std::int64_t& bytes) const {
  bytes = node_->workspace();
  return {};
}

std::int64_t Graph::get_fe_workspace_size_subtree() const { return node_->frontend_bytes(); }

error_object Graph::execute(cudnnHandle_t handle, std::unordered_map<std::int64_t, void*>& pointers,
                            void* workspace) const {
  if (cudnn().breaks_execution) return {"CUDNN_STATUS_EXECUTION_FAILED"};
  EXPECT_EQ(node_->stage, 5);
  EXPECT_TRUE(handle->has_stream);
  EXPECT_EQ(handle->stream, kzero::runtime::stream_of({}));
  EXPECT_EQ(std::bit_cast<std::uintptr_t>(workspace) % 256, 0U);
  EXPECT_EQ(pointers.size(), node_->tensors().size());
  for (const Tensor& t : node_->tensors()) {
    EXPECT_TRUE(pointers.contains(t->uid)) << t->name;
    const auto promised = static_cast<std::uintptr_t>(t->alignment);
    EXPECT_EQ(std::bit_cast<std::uintptr_t>(pointers[t->uid]) % promised, 0U) << t->name;
  }
  ++node_->record->calls;
  kzero::doubles::enqueue(handle->stream, [node = node_, pointers, workspace] {
    std::memset(workspace, 0x7f, static_cast<std::size_t>(node->workspace()));
    if (node->is_backward()) {
      node->backward(pointers);
    } else {
      node->forward(pointers);
    }
  });
  return {};
}

}  // namespace cudnn_frontend::graph

#include "kernels/attention/cudnn_plans.hpp"

#include <cudnn_frontend.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <stdexcept>
#include <unordered_map>

#include "base/error.hpp"

namespace kzero::kernels {

namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using Pointers = std::unordered_map<std::int64_t, void*>;

/// A graph that tells how much scratch the frontend takes for itself.
class Graph : public fe::graph::Graph {
 public:
  Index frontend_bytes() const { return get_fe_workspace_size_subtree(); }
};

/// Tensor numbers in both graphs. Calls use them to name their pointers.
enum Uid : std::int64_t {
  q_uid = 1,
  k_uid,
  v_uid,
  out_uid,
  log_sum_uid,
  dout_uid,
  dq_uid,
  dk_uid,
  dv_uid
};

/// Fails with the first line of the library's explanation. The other lines list engines.
void require(fe::error_object error) {
  if (error.is_good()) return;
  const std::string text = error.get_message();
  fail(ExitCode::other, "cuDNN: {}", text.substr(0, text.find('\n')));
}

fe::DataType_t type_of(Dtype type) {
  return type == Dtype::bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF;
}

/// Heads of rows in memory as [B,H,T,d]. A call's sequences are consecutive. Its rows are separated
/// by the heads that it leaves out.
struct Heads {
  Index heads, stride;

  Tensor add_to(Graph& graph, const char* name, Uid uid, const AttentionShape& s) const {
    return apply(graph.tensor(fe::graph::Tensor_attributes()), name, uid, s);
  }
  Tensor apply(const Tensor& tensor, const char* name, Uid uid, const AttentionShape& s) const {
    tensor->set_name(name).set_uid(uid);
    tensor->set_dim({s.batch, heads, s.sequence, s.head_width});
    tensor->set_stride({s.sequence * stride, s.head_width, stride, 1});
    return tensor;
  }
};

/// log_sum [B*H,T]. The part of a call is contiguous, which cuDNN requires before 9.26: a call has
/// all heads of its sequences, or heads of one sequence. It begins after complete rows of T
/// numbers, so it may lack the 16-byte alignment that the frontend assumes by default.
void describe_log_sum(const Tensor& tensor, const AttentionShape& s) {
  tensor->set_alignment(sizeof(float));
  tensor->set_name("log_sum").set_uid(log_sum_uid).set_data_type(fe::DataType_t::FLOAT);
  tensor->set_dim({s.batch, s.heads, s.sequence, 1});
  tensor->set_stride({s.heads * s.sequence, s.sequence, 1, 1});
}

/// A graph without nodes: 16 bits for inputs and outputs, fp32 inside. `capability` 0: that of the
/// current device.
std::unique_ptr<Graph> empty_graph(Dtype type, int capability) {
  auto graph = std::make_unique<Graph>();
  if (capability > 0) graph->set_sm_version(capability);
  graph->set_io_data_type(type_of(type));
  graph->set_intermediate_data_type(fe::DataType_t::FLOAT);
  graph->set_compute_data_type(fe::DataType_t::FLOAT);
  return graph;
}

std::unique_ptr<Graph> forward_graph(const AttentionProblem& p, int capability = 0) {
  const AttentionShape& s = p.shape;
  auto graph = empty_graph(p.type, capability);
  const Tensor q = Heads{s.heads, p.q_stride}.add_to(*graph, "q", q_uid, s);
  const Tensor k = Heads{s.kv_heads, p.k_stride}.add_to(*graph, "k", k_uid, s);
  const Tensor v = Heads{s.kv_heads, p.v_stride}.add_to(*graph, "v", v_uid, s);
  auto options = fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(true);
  options.set_causal_mask(true).set_attn_scale(p.factor());
  auto results = graph->sdpa(q, k, v, std::move(options));
  Heads{s.heads, s.width()}.apply(results[0], "out", out_uid, s)->set_output(true);
  describe_log_sum(results[1], s);
  results[1]->set_output(true);
  return graph;
}

/// `call` is a part of the problem's heads.
std::unique_ptr<Graph> backward_graph(const AttentionProblem& p, const AttentionShape& call,
                                      int capability = 0) {
  auto graph = empty_graph(p.type, capability);
  const Heads of_out{call.heads, p.shape.width()};
  const Tensor q = Heads{call.heads, p.q_stride}.add_to(*graph, "q", q_uid, call);
  const Tensor k = Heads{call.kv_heads, p.k_stride}.add_to(*graph, "k", k_uid, call);
  const Tensor v = Heads{call.kv_heads, p.v_stride}.add_to(*graph, "v", v_uid, call);
  const Tensor out = of_out.add_to(*graph, "out", out_uid, call);
  const Tensor dout = of_out.add_to(*graph, "dout", dout_uid, call);
  const Tensor log_sum = graph->tensor(fe::graph::Tensor_attributes());
  describe_log_sum(log_sum, call);
  auto options = fe::graph::SDPA_backward_attributes().set_name("attention_gradient");
  options.set_causal_mask(true)
      .set_attn_scale(p.factor())
      .set_deterministic_algorithm(p.fixed_order);
  // 0: no scratch for the gradients of scores; -1: any. The frontend reads it from the environment
  // when it builds the graph.
  const bool stores_scores = AttentionCalls(p).stores_scores;
  setenv("CUDNN_FRONTEND_ATTN_DP_WORKSPACE_LIMIT", stores_scores ? "-1" : "0", 1);
  auto results = graph->sdpa_backward(q, k, v, out, dout, log_sum, std::move(options));
  const Heads queries{call.heads, p.gradient_stride()}, keys{call.kv_heads, p.gradient_stride()};
  queries.apply(results[0], "dq", dq_uid, call)->set_output(true);
  keys.apply(results[1], "dk", dk_uid, call)->set_output(true);
  keys.apply(results[2], "dv", dv_uid, call)->set_output(true);
  return graph;
}

/// Asks for plans, in the order of the library's heuristic, that fit into the scratch and, unless
/// the problem allows others, reproduce their bits. The choice depends on shape and device, not on
/// time. `handle` is null for a described device.
void ask(Graph& graph, cudnnHandle_t handle, const AttentionProblem& p, Index scratch_bytes) {
  require(graph.validate());
  require(graph.build_operation_graph(handle));
  require(graph.create_execution_plans({fe::HeurMode_t::A}));
  if (p.fixed_order) graph.deselect_numeric_notes({fe::NumericalNote_t::NONDETERMINISTIC});
  graph.deselect_workspace_greater_than(scratch_bytes - graph.frontend_bytes());
  require(graph.check_support(handle));
}

/// Builds the first of the plans.
void build(Graph& graph, cudnnHandle_t handle, Index scratch_bytes) {
  require(graph.build_plans(handle, fe::BuildPlanPolicy_t::HEURISTICS_CHOICE));
  std::int64_t needed = 0;
  require(graph.get_workspace_size(needed));
  KZERO_REQUIRE(needed <= scratch_bytes, ExitCode::other,
                "cuDNN: its plan needs {} bytes of scratch, {} are planned", needed, scratch_bytes);
}

struct DestroyHandle {
  void operator()(cudnnContext* handle) const { cudnnDestroy(handle); }
};

void require(cudnnStatus_t status, const char* call) {
  KZERO_REQUIRE(status == CUDNN_STATUS_SUCCESS, ExitCode::other, "{} failed: {}", call,
                cudnnGetErrorString(status));
}

/// `data` + 16-bit elements, without const, as the map requires.
void* at(const void* data, Index elements) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(data) + elements * 2);
}

void run(Graph& graph, cudnnHandle_t handle, cudaStream_t stream, Pointers pointers,
         void* scratch) {
  require(cudnnSetStream(handle, stream), "cudnnSetStream");
  const auto address = round_up(std::bit_cast<std::intptr_t>(scratch), AttentionCalls::alignment);
  require(graph.execute(handle, pointers, std::bit_cast<void*>(address)));
}

/// The part of the problem that one backward call computes.
AttentionShape call_of(const AttentionProblem& problem) {
  const AttentionCalls calls(problem);
  AttentionShape call = problem.shape;
  call.batch = calls.sequences;
  call.kv_heads = calls.kv_heads;
  call.heads = calls.kv_heads * problem.shape.group();
  return call;
}

template <class F>
void with_errors(const F& call) {
  try {
    call();
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {  // cudnnException, or the frontend's plain one
    fail(ExitCode::other, "cuDNN: {}", error.what());
  }
}

}  // namespace

struct CudnnAttentionPlans::Graphs {
  std::unique_ptr<cudnnContext, DestroyHandle> handle;
  std::unique_ptr<Graph> forward, backward;
};

CudnnAttentionPlans::CudnnAttentionPlans(const AttentionProblem& problem)
    : problem_(problem), call_(call_of(problem)), graphs_(std::make_unique<Graphs>()) {
  const Index scratch_bytes = AttentionCalls(problem).plan_bytes;
  with_errors([&] {
    cudnnHandle_t made = nullptr;
    require(cudnnCreate(&made), "cudnnCreate");
    graphs_->handle.reset(made);
    graphs_->forward = forward_graph(problem);
    if (problem.has_backward) graphs_->backward = backward_graph(problem, call_);
    for (Graph* graph : {graphs_->forward.get(), graphs_->backward.get()}) {
      if (graph == nullptr) continue;
      ask(*graph, made, problem, scratch_bytes);
      build(*graph, made, scratch_bytes);
    }
  });
}

void CudnnAttentionPlans::check(const AttentionProblem& problem, const DescribedDevice& device,
                                Index scratch_bytes, bool compile) {
  with_errors([&] {
    const auto properties = std::make_shared<fe::DeviceProperties>();
    require(properties->deserialize({device.properties.begin(), device.properties.end()}));
    const auto check_graph = [&](const std::unique_ptr<Graph>& graph) {
      graph->set_device_properties(properties);
      ask(*graph, nullptr, problem, scratch_bytes);
      if (compile) build(*graph, nullptr, scratch_bytes);
    };
    check_graph(forward_graph(problem, device.capability));
    if (problem.has_backward)
      check_graph(backward_graph(problem, call_of(problem), device.capability));
  });
}

CudnnAttentionPlans::~CudnnAttentionPlans() = default;

std::string CudnnAttentionPlans::name() {
  const std::size_t v = cudnnGetVersion();
  return fmt::format("cuDNN {}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

void CudnnAttentionPlans::forward(cudaStream_t stream, const ForwardOperands& x,
                                  void* scratch) const {
  run(*graphs_->forward, graphs_->handle.get(), stream,
      {{q_uid, at(x.q, 0)},
       {k_uid, at(x.k, 0)},
       {v_uid, at(x.v, 0)},
       {out_uid, x.out},
       {log_sum_uid, x.log_sum}},
      scratch);
}

void CudnnAttentionPlans::backward(cudaStream_t stream, const BackwardOperands& x,
                                   void* scratch) const {
  for (Index b = 0; b < problem_.shape.batch; b += call_.batch) {
    for (Index k = 0; k < problem_.shape.kv_heads; k += call_.kv_heads)
      backward_call(stream, x, b, k, scratch);
  }
}

void CudnnAttentionPlans::backward_call(cudaStream_t stream, const BackwardOperands& x, Index b,
                                        Index k, void* scratch) const {
  const AttentionProblem& p = problem_;
  const AttentionShape& s = p.shape;
  const Index row = b * s.sequence, d = s.head_width, head = k * s.group();
  const auto queries = [&](const void* data, Index stride) {
    return at(data, row * stride + head * d);
  };
  const auto keys = [&](const void* data, Index stride) { return at(data, row * stride + k * d); };
  const Index gradient = p.gradient_stride();
  run(*graphs_->backward, graphs_->handle.get(), stream,
      {{q_uid, queries(x.q, p.q_stride)},
       {k_uid, keys(x.k, p.k_stride)},
       {v_uid, keys(x.v, p.v_stride)},
       {out_uid, queries(x.out, s.width())},
       {dout_uid, queries(x.dout, s.width())},
       {log_sum_uid, const_cast<float*>(x.log_sum) + (b * s.heads + head) * s.sequence},
       {dq_uid, queries(x.dq, gradient)},
       {dk_uid, keys(x.dk, gradient)},
       {dv_uid, keys(x.dv, gradient)}},
      scratch);
}

}  // namespace kzero::kernels

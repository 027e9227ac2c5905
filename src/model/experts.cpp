#include "model/experts.hpp"

#include <algorithm>
#include <string>

#include "kernels/all_heads_norm.hpp"
#include "kernels/expert_rows.hpp"
#include "kernels/few_rows.hpp"
#include "kernels/gated.hpp"
#include "kernels/initialize.hpp"

namespace kzero::model {

using deck::RecomputeMode;
using tensor::Accumulate;
using tensor::operand;
using tensor::Transpose;

namespace {

/// Copies integers of the device to the host and waits for them: the host divides the rows of
/// products among experts.
void read(const Execution& exec, const Vector<std::int32_t>& from, std::vector<std::int32_t>& to) {
  const Kokkos::View<std::int32_t*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> host(to.data(),
                                                                                     to.size());
  Kokkos::deep_copy(exec, host, from);
  exec.fence("kzero::model::expert_rows_read");
}

/// The GEMM of logits [N,E] = normal [N,D] router^T, in fp32.
template <class T>
tensor::GemmProblem router_product(Matrix<const T> normal, Matrix<const T> router,
                                   const Matrix<float>& logits) {
  tensor::GemmProblem p;
  p.m = normal.extent(0), p.n = router.extent(0), p.k = router.extent(1);
  p.a = operand(normal), p.b = operand(router, Transpose::yes);
  p.c = logits.data(), p.c_stride = p.n;
  p.in = dtype_of<T>, p.out = Dtype::fp32;
  return p;
}

FeedForwardPart expert_part(const Declaration& d, Index e) {
  return {"experts." + std::to_string(e), d.extents.feed_forward};
}

/// Declares the router's weight [E,D], and after it that of the shared expert's gate [1,D]: one
/// product computes the logits of both. Returns where they begin.
Index declare_router(Declaration& d) {
  const ExpertSettings& s = d.shape.experts;
  const Index begin = d.own.add(
      matrix_spec(std::string(d.family.names.router) + ".weight", s.count, d.shape.hidden, d.std));
  if (s.shared_gate)
    d.own.add(
        matrix_spec(deck::shared_gate_path(d.family.family) + ".weight", 1, d.shape.hidden, d.std));
  return begin;
}

}  // namespace

template <class T>
Experts<T>::Experts(Declaration& d)
    : shape_(d.shape),
      norm_(d, d.family.names.feed_forward.input),
      router_(declare_router(d)),
      shared_(d),
      up_(d, deck::Product::up, expert_part(d, 0)),
      down_(d, deck::Product::down, expert_part(d, 0)),
      stride_(up_.elements() + down_.elements()) {
  const Index count = shape_.experts.count;
  for (Index e = 1; e < count; ++e) {
    static_cast<void>(Linear<T>(d, deck::Product::up, expert_part(d, e)));
    static_cast<void>(Linear<T>(d, deck::Product::down, expert_part(d, e)));
  }
  if (shape_.experts.has_bias) {
    param::ParamSpec bias =
        vector_spec(std::string(d.family.names.router) + ".e_score_correction_bias", count);
    bias.follows_choices = true;
    bias_ = d.own.add(std::move(bias));
  }
  weights_.resize(static_cast<std::size_t>(count));
  gradients_.resize(static_cast<std::size_t>(count));
}

template <class T>
Kept Experts<T>::kept(RecomputeMode mode) const {
  if (mode == RecomputeMode::none) return Kept::all;
  return mode == RecomputeMode::layernorm_gelu ? Kept::products : Kept::input;
}

template <class T>
ScratchNeeds Experts<T>::scratch(const BatchShape& batch) const {
  const ExpertSettings& s = shape_.experts;
  const Index rows = batch.batch * shape_.chunk_rows();
  const Index sorted = kernels::max_sorted_rows(rows, s.count, s.per_token);
  const Index shared = shared_.exists() ? rows : 0;
  return {.wide = sorted * up_.out() + shared * shared_.hidden_columns(),
          .sum_columns = shape_.norm_elements(),
          .sorted_rows = (sorted + shared) * shape_.hidden,
          .gate_gradients = shape_.tensor.size * rows * s.gates(),
          .router_gradient = rows * s.logits()};
}

/// Takes the routing of `chunks` chunks of `rows` rows. Memory that is not kept is that of all
/// layers, but each chunk has its own.
template <class T>
void Experts<T>::take_routing(Activations& memory, bool is_kept, Index chunks, Index rows) {
  const ExpertSettings& s = shape_.experts;
  const Index k = s.per_token;
  capacity_ = kernels::max_sorted_rows(rows, s.count, k);
  const auto integers = [&](const char* name, Index of_chunk) {
    return memory.take<std::int32_t>(is_kept, name, chunks, of_chunk).data();
  };
  const Index columns = s.logits(), of_shared = s.shared_gate ? rows : 0;
  float* const logits = memory.take<float>(is_kept, "router_logits", chunks, rows * columns).data();
  float* const gates = memory.take<float>(is_kept, "gates", chunks, rows * k).data();
  float* const shared = memory.take<float>(is_kept, "shared_gates", chunks, of_shared).data();
  std::int32_t* const experts = integers("chosen_experts", rows * k);
  std::int32_t* const places = integers("places", rows * k);
  std::int32_t* const choices = integers("choices", capacity_);
  std::int32_t* const begin = integers("expert_begin", s.count + 1);
  routing_.clear();
  for (Index i = 0; i < chunks; ++i) {
    routing_.push_back({Matrix<float>(logits + i * rows * columns, rows, columns),
                        {Matrix<std::int32_t>(experts + i * rows * k, rows, k),
                         Matrix<float>(gates + i * rows * k, rows, k),
                         Vector<float>(shared + i * of_shared, of_shared)},
                        {Matrix<std::int32_t>(places + i * rows * k, rows, k),
                         Vector<std::int32_t>(choices + i * capacity_, capacity_),
                         Vector<std::int32_t>(begin + i * (s.count + 1), s.count + 1)},
                        std::vector<std::int32_t>(static_cast<std::size_t>(s.count + 1)),
                        std::vector<std::int32_t>(static_cast<std::size_t>(s.count))});
  }
}

template <class T>
void Experts<T>::keep(Activations& memory, const BatchShape& batch, Kept kept) {
  const TransformerShape& s = shape_;
  const Index n = s.stream_rows(batch.batch * s.own_sequence());
  const Index chunks = s.sequence_rank.own_chunks();
  const bool products = kept != Kept::input, passes = kept == Kept::all;
  kept_ = kept;
  normal_ = memory.take<T>(passes, "norm2", n, s.hidden);
  statistics_ = {memory, passes, "mean2", "rstd2", s, n};
  take_routing(memory, products, chunks, batch.batch * s.chunk_rows());
  shared_.keep(memory, products, passes, chunks, batch.batch * s.chunk_rows());
  hidden_ = memory.take<T>(products, "hidden", chunks * capacity_, up_.out());
  activated_ = memory.take<T>(passes, "activated", chunks * capacity_, down_.in());
}

template <class T>
Matrix<T> Experts<T>::sorted_rows(const Matrix<T>& all, Index chunk) const {
  const auto columns = static_cast<Index>(all.extent(1));
  return Matrix<T>(all.data() + chunk * capacity_ * columns, routing_[chunk].rows(), columns);
}

/// Computes y = x op(W) of a layer for all experts' sorted rows. W is [out,in].
template <class T>
void Experts<T>::multiply(const Execution& exec, tensor::Gemm& gemm, const Linear<T>& layer,
                          const Routing& routing, const T* unit, Transpose transpose,
                          Matrix<const T> x, Matrix<T> y) {
  for (std::size_t e = 0; e < weights_.size(); ++e)
    weights_[e] = {routing.begin[e], routing.counts[e],
                   unit + layer.begin() + static_cast<Index>(e) * stride_};
  kernels::expert_products<T>(exec, gemm, weights_, {layer.out(), layer.in()}, transpose, x, y);
}

/// Computes the gradients of a layer's weights, unless they are frozen.
template <class T>
void Experts<T>::backward_weights(const Context<T>& c, const Linear<T>& layer,
                                  const Routing& routing, Matrix<const T> x, Matrix<const T> dy,
                                  const LayerGradients<T>& g) {
  if (g.units.own == nullptr) return;
  for (std::size_t e = 0; e < gradients_.size(); ++e)
    gradients_[e] = {routing.begin[e], routing.counts[e],
                     g.units.own + layer.begin() + static_cast<Index>(e) * stride_};
  kernels::expert_gradients<T, T>(*c.exec, *c.gemm, gradients_, {layer.out(), layer.in()}, dy, x,
                                  g.accumulate);
}

template <class T>
Matrix<const T> Experts<T>::router(const T* unit) const {
  return Matrix<const T>(unit + router_, shape_.experts.logits(), shape_.hidden);
}

/// Scratch memory after that of the sorted rows, for rows of the shared expert.
template <class T>
Matrix<T> Experts<T>::shared_rows(const Context<T>& c) const {
  return Matrix<T>(c.experts.sorted + capacity_ * shape_.hidden, c.rows, shape_.hidden);
}

template <class T>
kernels::Scoring Experts<T>::scoring() const {
  return {shape_.experts.is_sigmoid, shape_.experts.normalizes};
}

template <class T>
kernels::CountedRows Experts<T>::counted(const BlockPass<T>& pass, const Context<T>& c,
                                         const PartRows& rows) const {
  return {pass.documents, rows.of(pass.router.targets), {c.first_row, shape_.sequence}};
}

/// Chooses experts for all rows of a chunk and sorts them. Waits for the numbers of rows.
template <class T>
void Experts<T>::route(const Context<T>& c, const T* unit, Matrix<const T> normal,
                       Routing& routing) const {
  c.gemm->run(*c.exec, router_product<T>(normal, router(unit), routing.logits));
  kernels::choose_experts<T>(*c.exec, routing.logits, scoring(), bias(unit), routing.choices);
  kernels::sort_choices(*c.exec, routing.choices.experts, routing.sorted);
  read(*c.exec, routing.sorted.begin, routing.begin);
  for (std::size_t e = 0; e < routing.counts.size(); ++e)
    routing.counts[e] = routing.begin[e + 1] - routing.begin[e];
}

/// Adds how often the rows of a chunk chose each expert.
template <class T>
void Experts<T>::count(const BlockPass<T>& pass, const Context<T>& c, const PartRows& rows,
                       const Routing& routing) const {
  if (pass.router.choices == nullptr) return;
  const Vector<std::int32_t>& counts = c.experts.counts;
  kernels::count_choices(*c.exec, routing.choices.experts, counted(pass, c, rows), counts);
  kernels::add_counts<std::uint64_t>(*c.exec, counts,
                                     Vector<std::uint64_t>(pass.router.choices, counts.size()));
}

/// Computes the activations of a chunk before the last products, from the norm's result.
template <class T>
void Experts<T>::fill(const BlockPass<T>& pass, const Context<T>& c, const PartRows& rows,
                      Index chunk) {
  const Matrix<const T> normal = c.all_rows(rows.of(normal_));
  Routing& routing = routing_[chunk];
  route(c, pass.parameters.own, normal, routing);
  const Matrix<T> sorted(c.experts.sorted, routing.rows(), shape_.hidden);
  kernels::gather_rows<T>(*c.exec, normal, routing.sorted.choices, shape_.experts.per_token,
                          sorted);
  const Matrix<T> hidden = sorted_rows(hidden_, chunk);
  multiply(*c.exec, *c.gemm, up_, routing, pass.parameters.own, Transpose::yes, sorted, hidden);
  kernels::swiglu_forward<T>(*c.exec, hidden, sorted_rows(activated_, chunk));
  shared_.fill(c, pass.parameters, normal, chunk);
}

/// Computes y = x + the gated sums of the experts' results.
template <class T>
void Experts<T>::combine(const BlockPass<T>& pass, const Context<T>& c, Index chunk,
                         Matrix<const T> x, Matrix<T> y) {
  const Routing& routing = routing_[chunk];
  const Matrix<T> sorted(c.experts.sorted, routing.rows(), shape_.hidden);
  multiply(*c.exec, *c.gemm, down_, routing, pass.parameters.own, Transpose::yes,
           sorted_rows(activated_, chunk), sorted);
  const Matrix<T> share = c.is_split() ? c.hidden_grad : y;  // this rank's part of the sum
  const Matrix<const T> addend = c.is_split() ? Matrix<const T>() : x;
  kernels::combine_rows<T>(*c.exec, sorted, routing.sorted.places, routing.choices.gates, addend,
                           share);
  if (shared_.exists()) {
    const Matrix<T> of_shared = shared_rows(c);
    shared_.forward(c, pass.parameters, chunk, of_shared);
    kernels::combine_rows<T>(*c.exec, of_shared, {}, routing.shared_gates(), share, share);
  }
  if (c.is_split()) c.sum_to_stream(share, nullptr, x.data(), y);
}

template <class T>
void Experts<T>::forward(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> y) {
  norm_.forward(*pass.c.exec, pass.parameters.own, x, normal_, statistics_);
  for_each_chunk(pass.c, [&](const Context<T>& c, const PartRows& rows, Index chunk) {
    fill(pass, c, rows, chunk);
    count(pass, c, rows, routing_[chunk]);
    combine(pass, c, chunk, rows.of(x), rows.of(y));
  });
}

template <class T>
void Experts<T>::recompute(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> y) {
  if (kept_ == Kept::all) return;
  norm_.forward(*pass.c.exec, pass.parameters.own, x, normal_, statistics_);
  for_each_chunk(pass.c, [&](const Context<T>& c, const PartRows& rows, Index chunk) {
    if (kept_ == Kept::products) {
      kernels::swiglu_forward<T>(*c.exec, sorted_rows(hidden_, chunk),
                                 sorted_rows(activated_, chunk));
      shared_.activate(*c.exec, chunk);
      return;
    }
    fill(pass, c, rows, chunk);
    if (y.size() > 0) combine(pass, c, chunk, rows.of(x), rows.of(y));
  });
}

/// This tensor rank's gradients of the gates [N,k], and after them those of the shared expert's
/// [N].
template <class T>
float* Experts<T>::gate_gradients(const Context<T>& c, const Routing& routing) const {
  const auto rows = static_cast<Index>(routing.logits.extent(0));
  return c.experts.gate_gradients + shape_.tensor.rank * rows * shape_.experts.gates();
}

/// Scratch memory after that of the experts' hidden columns.
template <class T>
Matrix<T> Experts<T>::shared_gradient(const Context<T>& c) const {
  return Matrix<T>(c.wide + capacity_ * up_.out(), c.rows, shared_.hidden_columns());
}

/// Computes the gradients of the experts' hidden columns into c.wide [M,2f], of their last layers,
/// and of the gates. dout [N,D] is that of the sums. The same for the shared expert.
template <class T>
void Experts<T>::hidden_backward(const BlockPass<T>& pass, const Context<T>& c, Index chunk,
                                 Matrix<const T> dout, const LayerGradients<T>& g) {
  const Routing& routing = routing_[chunk];
  const Matrix<T> sorted(c.experts.sorted, routing.rows(), shape_.hidden);
  const Matrix<T> activated = sorted_rows(activated_, chunk);
  const Matrix<T> dhidden(c.wide, routing.rows(), hidden_.extent(1));
  kernels::gather_rows<T>(*c.exec, dout, routing.sorted.choices, shape_.experts.per_token, sorted);
  multiply(*c.exec, *c.gemm, down_, routing, pass.parameters.own, Transpose::no, sorted, dhidden);
  const Matrix<float>& gates = routing.choices.gates;
  float* const dgates = gate_gradients(c, routing);
  kernels::gate_backward<T>(*c.exec, routing.sorted.choices, gates, activated, dhidden,
                            Matrix<float>(dgates, gates.extent(0), gates.extent(1)));
  backward_weights(c, down_, routing, activated, sorted, g);
  kernels::swiglu_backward<T>(*c.exec, sorted_rows(hidden_, chunk), dhidden);
  if (!shared_.exists()) return;
  const Matrix<const float> of_shared = routing.shared_gates();
  const Matrix<float> dshared(dgates + gates.size(), of_shared.extent(0), of_shared.extent(1));
  shared_.hidden_backward(c, pass.parameters, chunk, dout, of_shared, dshared, g,
                          shared_gradient(c));
}

/// Replaces the tensor ranks' gradients of the gates by their sum, at the first rank's place.
template <class T>
void Experts<T>::sum_gate_gradients(const Context<T>& c, const Routing& routing) const {
  if (!c.is_split()) return;
  const Index count = static_cast<Index>(routing.logits.extent(0)) * shape_.experts.gates();
  float* const all = c.experts.gate_gradients;
  c.group.exchange_own(*c.exec, all, count);
  kernels::sum_of_ranks(*c.exec,
                        Vector<const float>(all, static_cast<std::size_t>(c.group.size() * count)),
                        Vector<float>(all, static_cast<std::size_t>(count)));
}

/// Computes the gradients of the experts' first layers, and in the scratch memory those of their
/// inputs [M,D].
template <class T>
void Experts<T>::input_backward(const BlockPass<T>& pass, const Context<T>& c, Index chunk,
                                Matrix<const T> normal, const LayerGradients<T>& g) {
  const Routing& routing = routing_[chunk];
  const Matrix<T> sorted(c.experts.sorted, routing.rows(), shape_.hidden);
  const Matrix<T> dhidden(c.wide, routing.rows(), hidden_.extent(1));
  if (trains()) {
    kernels::gather_rows<T>(*c.exec, normal, routing.sorted.choices, shape_.experts.per_token,
                            sorted);
    backward_weights(c, up_, routing, sorted, dhidden, g);
  }
  multiply(*c.exec, *c.gemm, up_, routing, pass.parameters.own, Transpose::no, dhidden, sorted);
  if (shared_.exists())
    shared_.input_backward(c, pass.parameters, normal, shared_gradient(c), g, shared_rows(c));
}

/// Computes the gradient of the router's weight, and in c.hidden_grad [N,D] its part of the
/// gradient of the norm's result. All tensor ranks compute the same, so only the first has it.
template <class T>
void Experts<T>::router_backward(const BlockPass<T>& pass, const Context<T>& c,
                                 const PartRows& rows, Index chunk, Matrix<const T> normal,
                                 const LayerGradients<T>& g) const {
  const Routing& routing = routing_[chunk];
  const Matrix<float>& gates = routing.choices.gates;
  const float* const sums = c.experts.gate_gradients;
  const Matrix<const float> dgates(sums, gates.extent(0), gates.extent(1));
  const Vector<const float> dshared(sums + gates.size(), routing.choices.shared.size());
  const ExpertSettings& s = shape_.experts;
  const kernels::CountedRows rows_that_count = counted(pass, c, rows);
  kernels::count_choices(*c.exec, routing.choices.experts, rows_that_count, c.experts.counts);
  const Matrix<T> dlogits(c.experts.router_gradient, routing.logits.extent(0), s.logits());
  const float scale = pass.router.mean_scale;
  kernels::router_backward<T>(*c.exec, routing.logits, routing.choices, dgates, dshared, scoring(),
                              rows_that_count, c.experts.counts, {s.balance * scale, s.z * scale},
                              dlogits);
  if (g.units.own != nullptr) {
    tensor::GemmProblem weight;
    weight.m = s.logits(), weight.n = shape_.hidden, weight.k = dlogits.extent(0);
    weight.a = operand(dlogits, Transpose::yes), weight.b = operand(normal);
    weight.c = g.units.own + router_, weight.c_stride = weight.n;
    weight.in = weight.out = dtype_of<T>;
    weight.accumulate = g.accumulate;
    c.gemm->run(*c.exec, weight);
    if (bias_ >= 0) kernels::fill(*c.exec, Vector<T>(g.units.own + bias_, s.count), 0);
  }
  if (shape_.tensor.rank > 0) return;
  tensor::GemmProblem input;
  input.m = dlogits.extent(0), input.n = shape_.hidden, input.k = s.logits();
  input.a = operand(dlogits), input.b = operand(router(pass.parameters.own));
  input.c = c.hidden_grad.data(), input.c_stride = input.n;
  input.in = input.out = dtype_of<T>;
  c.gemm->run(*c.exec, input);
}

template <class T>
bool Experts<T>::backward(const BlockPass<T>& pass, Matrix<const T> x,
                          const HalfGradients<T>& gradients) {
  if (!gradients.needs_input) return false;  // nothing trains, for experts have no adapters
  for_each_chunk(pass.c, [&](const Context<T>& c, const PartRows& rows, Index chunk) {
    const LayerGradients<T> g = gradients.of(chunk);
    const Matrix<T> dx = rows.of(gradients.dx);
    hidden_backward(pass, c, chunk, c.all_rows(dx), g);
    const Matrix<const T> normal = c.all_rows(rows.of(normal_));
    input_backward(pass, c, chunk, normal, g);
    const Routing& routing = routing_[chunk];
    sum_gate_gradients(c, routing);
    router_backward(pass, c, rows, chunk, normal, g);
    const Matrix<const T> sorted(c.experts.sorted, routing.rows(), shape_.hidden);
    const Matrix<const T> of_router =
        shape_.tensor.rank == 0 ? Matrix<const T>(c.hidden_grad) : Matrix<const T>();
    kernels::combine_rows<T>(*c.exec, sorted, routing.sorted.places, {}, of_router, c.hidden_grad);
    if (shared_.exists())
      kernels::combine_rows<T>(*c.exec, shared_rows(c), {}, {}, c.hidden_grad, c.hidden_grad);
    norm_.backward(c, pass.parameters.own, rows.of(x), statistics_.of(rows),
                   {dx, Accumulate::yes, norm_.in(g.units.own), g.accumulate});
  });
  return true;
}

template <class T>
void Experts<T>::cache(memory::Arenas& /*arenas*/, Activations& shared,
                       const kernels::CacheShape& /*shape*/, Index rows) {
  normal_ = shared.take<T>(false, "norm2", rows, shape_.hidden);
  statistics_ = {shared, false, "mean2", "rstd2", shape_, rows};
  take_routing(shared, false, 1, rows);
  hidden_ = shared.take<T>(false, "hidden", capacity_, up_.out());
  activated_ = shared.take<T>(false, "activated", capacity_, down_.in());
  shared_.cache(shared, rows);
  const Index of_shared = shared_.exists() ? rows : 0;
  sorted_ = shared.take<T>(false, "sorted", capacity_ + of_shared, shape_.hidden);
  const Index count = shape_.experts.count;
  counts_ = Vector<std::int32_t>(shared.take<std::int32_t>(false, "expert_counts", count, 1).data(),
                                 count);
}

/// Chooses experts for the rows of a pass of generation.
template <class T>
typename Experts<T>::Routing& Experts<T>::route(const CachedRows<T>& rows, const T* unit,
                                                Matrix<const T> normal) {
  Routing& r = routing_.front();
  const kernels::Choices choices{rows.of(r.choices.experts), rows.of(r.choices.gates),
                                 rows.of(r.choices.shared)};
  const Matrix<float> logits = rows.of(r.logits);
  if (rows.products == Products::library) {
    rows.gemm->run(rows.exec, router_product<T>(normal, router(unit), logits));
  } else {
    kernels::few_rows_product<T, float>(
        rows.exec, {normal, router(unit), kernels::WeightOrder::out_in}, logits);
  }
  kernels::choose_experts<T>(rows.exec, logits, scoring(), bias(unit), choices);
  kernels::sort_choices(rows.exec, choices.experts,
                        {rows.of(r.sorted.places), r.sorted.choices, r.sorted.begin});
  kernels::count_choices(rows.exec, choices.experts, kernels::CountedRows({}, {}, {}), counts_);
  read(rows.exec, r.sorted.begin, r.begin);
  read(rows.exec, counts_, r.counts);
  return r;
}

// An expert computes its own rows without those of padding: in most passes it has few.
template <class T>
void Experts<T>::step(const CachedRows<T>& rows, const T* unit, Matrix<const T> x, Matrix<T> y) {
  const Matrix<T> normal = rows.of(normal_);
  norm_.forward(rows.exec, unit, x, normal, statistics_);
  const Routing& routing = route(rows, unit, normal);
  const PartRows in_use{0, routing.rows(), false};
  const Matrix<T> sorted = in_use.of(sorted_), hidden = in_use.of(hidden_);
  const Matrix<T> activated = in_use.of(activated_);
  kernels::gather_rows<T>(rows.exec, normal, routing.sorted.choices, shape_.experts.per_token,
                          sorted);
  multiply(rows.exec, *rows.gemm, up_, routing, unit, Transpose::yes, sorted, hidden);
  kernels::swiglu_forward<T>(rows.exec, hidden, activated);
  multiply(rows.exec, *rows.gemm, down_, routing, unit, Transpose::yes, activated, sorted);
  const bool is_split = rows.group.size() > 1;
  const Matrix<T> share = is_split ? Matrix<T>(rows.share, y.extent(0), y.extent(1)) : y;
  kernels::combine_rows<T>(rows.exec, sorted, rows.of(routing.sorted.places),
                           rows.of(routing.choices.gates), is_split ? Matrix<const T>() : x, share);
  if (shared_.exists()) {
    const Matrix<T> of_shared(sorted_.data() + capacity_ * shape_.hidden, y.extent(0), y.extent(1));
    shared_.step(rows, unit, normal, of_shared);
    kernels::combine_rows<T>(rows.exec, of_shared, {}, rows.of(routing.shared_gates()), share,
                             share);
  }
  if (is_split) rows.group.all_reduce(rows.exec, share, nullptr, x.data(), y);
}

template <class T>
double Experts<T>::router_operations() const {
  return 2 * static_cast<double>(shape_.experts.logits() * shape_.hidden);
}

template <class T>
Work Experts<T>::forward_work(const PassShape& pass) const {
  Work work(shape_, pass);
  work.operations = router_operations() + shared_.forward_operations() +
                    static_cast<double>(shape_.experts.per_token) *
                        (up_.forward_operations() + down_.forward_operations());
  work.messages.gather_stream();
  work.messages.sum_stream();
  return work;
}

template <class T>
Work Experts<T>::recompute_work(const PassShape& pass, Kept kept, bool is_last) const {
  if (kept == Kept::input && !is_last) return forward_work(pass);
  Work work(shape_, pass);
  const auto chosen = static_cast<double>(shape_.experts.per_token);
  if (kept == Kept::products) {
    const Index sorted = shape_.experts.per_token * (up_.out() + down_.in());
    const Index shared = shared_.hidden_columns() + shared_.active_columns();
    work.elements = static_cast<double>(2 * shape_.hidden + sorted + shared);
  }
  if (kept != Kept::input) return work;
  work.operations =
      router_operations() + shared_.up_operations() + chosen * up_.forward_operations();
  work.messages.gather_stream();
  return work;
}

template <class T>
Work Experts<T>::backward_work(const PassShape& pass, bool needs_input) const {
  Work work(shape_, pass);
  if (!needs_input) return work;
  work.operations = (trains() ? 2 : 1) * router_operations() + shared_.backward_operations() +
                    static_cast<double>(shape_.experts.per_token) *
                        (up_.backward_operations(true) + down_.backward_operations(true));
  Messages& messages = work.messages;
  messages.gather_stream();
  messages.gather_columns(shape_.experts.gates());
  messages.gather_stream();
  norm_.add_gradient_messages(messages);
  return work;
}

#define KZERO_INSTANTIATE(T) template class Experts<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model

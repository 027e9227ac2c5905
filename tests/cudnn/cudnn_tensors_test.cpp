// What cuDNN is told about the tensors of kzero's graphs. The two functions of the library that
// describe and finish a tensor are replaced: they note it and call the library's own.
#include <cudnn_backend.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cudnn/devices.hpp"
#include "unit/kernels/cudnn_requests.hpp"

namespace kzero::kernels {

namespace {

using Numbers = std::vector<std::int64_t>;

struct ToldTensor {
  Numbers dims, strides;
  std::int64_t alignment = 0;
};

std::map<cudnnBackendDescriptor_t, std::map<cudnnBackendAttributeName_t, Numbers>> begun;
/// Of those in memory, by number, in the order of the graphs.
std::map<std::int64_t, std::vector<ToldTensor>> told;

template <class F>
F* library_function(F* /*ours*/, const char* name) {
  return std::bit_cast<F*>(::dlsym(RTLD_NEXT, name));
}

void note(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, std::int64_t count,
          const void* values) {
  const auto* numbers = static_cast<const std::int64_t*>(values);
  switch (name) {
    case CUDNN_ATTR_TENSOR_DIMENSIONS:
    case CUDNN_ATTR_TENSOR_STRIDES:
    case CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT:
    case CUDNN_ATTR_TENSOR_UNIQUE_ID:
      begun[descriptor][name].assign(numbers, numbers + count);
      break;
    case CUDNN_ATTR_TENSOR_IS_VIRTUAL:
    case CUDNN_ATTR_TENSOR_IS_BY_VALUE:
      begun[descriptor][name] = {*static_cast<const bool*>(values)};
      break;
    default:
      break;
  }
}

void finish(cudnnBackendDescriptor_t descriptor) {
  const auto found = begun.find(descriptor);
  if (found == begun.end()) return;
  auto& of = found->second;
  const Numbers yes = {1};
  if (of[CUDNN_ATTR_TENSOR_IS_VIRTUAL] != yes && of[CUDNN_ATTR_TENSOR_IS_BY_VALUE] != yes) {
    told[of[CUDNN_ATTR_TENSOR_UNIQUE_ID].at(0)].push_back(
        {of[CUDNN_ATTR_TENSOR_DIMENSIONS], of[CUDNN_ATTR_TENSOR_STRIDES],
         of[CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT].at(0)});
  }
  begun.erase(found);
}

}  // namespace

}  // namespace kzero::kernels

extern "C" {

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* values) {
  static const auto own =
      kzero::kernels::library_function(&cudnnBackendSetAttribute, "cudnnBackendSetAttribute");
  kzero::kernels::note(descriptor, name, count, values);
  return own(descriptor, name, type, count, values);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  static const auto own =
      kzero::kernels::library_function(&cudnnBackendFinalize, "cudnnBackendFinalize");
  kzero::kernels::finish(descriptor);
  return own(descriptor);
}

}  // extern "C"

namespace kzero::kernels {

namespace {

/// The tensors of both graphs, of a problem whose backward computes one key head a call: B 3, T 35,
/// K 2, H 6, d 16. Rows of q and k are 128 wide, as after their norms, those of v 160, of out 96.
std::map<std::string, std::vector<ToldTensor>> tensors() {
  AttentionProblem p = problem(3, 35, 6, 2, 16);
  p.q_stride = p.k_stride = 128;
  AttentionProblem call = p;
  call.shape.batch = call.shape.kv_heads = 1;
  call.shape.heads = 3;
  p.max_scratch = AttentionCalls(call).plan_bytes;
  EXPECT_EQ(AttentionCalls(p).kv_heads, 1);
  told.clear();
  CudnnAttentionPlans::check(p, tests::device(90), AttentionCalls(p).plan_bytes, false);
  std::map<std::string, std::vector<ToldTensor>> named;
  std::int64_t number = 0;
  for (const char* name : {"q", "k", "v", "out", "log_sum", "dout", "dq", "dk", "dv"})
    named[name] = told[++number];
  return named;
}

/// Pairs of a stride and its dimension. The frontend transposes k and v for backward.
std::set<std::pair<std::int64_t, std::int64_t>> layout(const Numbers& dims,
                                                       const Numbers& strides) {
  std::set<std::pair<std::int64_t, std::int64_t>> pairs;
  for (std::size_t i = 0; i < dims.size(); ++i) pairs.emplace(strides.at(i), dims[i]);
  return pairs;
}

TEST(CudnnTensors, LieAsTheHeadsDo) {
  auto all = tensors();
  const auto expect = [&](const char* name, std::size_t graph, const Numbers& dims,
                          const Numbers& strides) {
    ASSERT_GT(all[name].size(), graph) << name;
    const ToldTensor& tensor = all[name][graph];
    EXPECT_EQ(layout(tensor.dims, tensor.strides), layout(dims, strides)) << name;
  };
  expect("q", 0, {3, 6, 35, 16}, {35 * 128, 16, 128, 1});
  expect("k", 0, {3, 2, 35, 16}, {35 * 128, 16, 128, 1});
  expect("v", 0, {3, 2, 35, 16}, {35 * 160, 16, 160, 1});
  expect("out", 0, {3, 6, 35, 16}, {35 * 96, 16, 96, 1});
  expect("log_sum", 0, {3, 6, 35, 1}, {6 * 35, 35, 1, 1});
  expect("q", 1, {1, 3, 35, 16}, {35 * 128, 16, 128, 1});
  expect("k", 1, {1, 1, 35, 16}, {35 * 128, 16, 128, 1});
  expect("v", 1, {1, 1, 35, 16}, {35 * 160, 16, 160, 1});
  expect("out", 1, {1, 3, 35, 16}, {35 * 96, 16, 96, 1});
  expect("log_sum", 1, {1, 3, 35, 1}, {3 * 35, 35, 1, 1});
  expect("dout", 0, {1, 3, 35, 16}, {35 * 96, 16, 96, 1});
  expect("dq", 0, {1, 3, 35, 16}, {35 * 160, 16, 160, 1});
  expect("dk", 0, {1, 1, 35, 16}, {35 * 160, 16, 160, 1});
  expect("dv", 0, {1, 1, 35, 16}, {35 * 160, 16, 160, 1});
}

// cuDNN may load as many bytes at once as a tensor is aligned to. The frontend promises 16.
TEST(CudnnTensors, PromiseNoAlignmentThatALaterCallLacks) {
  for (const auto& [name, graphs] : tensors()) {
    ASSERT_FALSE(graphs.empty()) << name;
    const ToldTensor& of_call = graphs.back();
    const bool is_log_sum = name == "log_sum";
    const std::int64_t step = of_call.dims[1] * of_call.strides[1] * (is_log_sum ? 4 : 2);
    EXPECT_EQ(step % of_call.alignment, 0) << name << ": aligned to " << of_call.alignment
                                           << ", the next call is " << step << " bytes further";
  }
}

}  // namespace

}  // namespace kzero::kernels

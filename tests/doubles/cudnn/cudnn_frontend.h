// A stand-in for cuDNN and the headers of its frontend: as much as cudnn_plans.cpp calls, with
// the names and signatures of frontend 1.32, which the device build compiles it with. tests/doubles/cudnn.cpp
// has the semantics.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

struct cudnnContext;
using cudnnHandle_t = cudnnContext*;
enum cudnnStatus_t { CUDNN_STATUS_SUCCESS = 0, CUDNN_STATUS_NOT_INITIALIZED = 1001 };

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle);
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle);
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream);
const char* cudnnGetErrorString(cudnnStatus_t status);
std::size_t cudnnGetVersion();

namespace cudnn_frontend {

enum class DataType_t { NOT_SET, FLOAT, HALF, BFLOAT16 };
enum class HeurMode_t { A, B, FALLBACK };
enum class BuildPlanPolicy_t { HEURISTICS_CHOICE, ALL };
enum class NumericalNote_t { TENSOR_CORE, NONDETERMINISTIC };

class cudnnException : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct [[nodiscard]] error_object {
  std::string text;

  std::string get_message() { return text; }
  bool is_good() const { return text.empty(); }
};

/// Of a device that is not there. tests/cudnn gives them to the real library.
struct DeviceProperties {
  error_object deserialize(const std::vector<std::uint8_t>& /*json*/) { return {"not here"}; }
};

namespace graph {

struct Tensor_attributes {
  std::string name;
  std::int64_t uid = 0;
  std::vector<std::int64_t> dim, stride;
  DataType_t type = DataType_t::NOT_SET;
  bool is_output = false;
  std::int64_t alignment = 16;

  Tensor_attributes& set_name(const std::string& value) { return name = value, *this; }
  Tensor_attributes& set_uid(std::int64_t value) { return uid = value, *this; }
  Tensor_attributes& set_dim(const std::vector<std::int64_t>& value) { return dim = value, *this; }
  Tensor_attributes& set_stride(const std::vector<std::int64_t>& value) {
    return stride = value, *this;
  }
  Tensor_attributes& set_data_type(DataType_t value) { return type = value, *this; }
  Tensor_attributes& set_alignment(std::int64_t value) { return alignment = value, *this; }
  Tensor_attributes& set_output(bool value) { return is_output = value, *this; }
};

/// The common part of both attributes.
template <class Derived>
struct Attention_attributes {
  bool is_causal = false, has_stats = false, is_deterministic = false;
  float scale = 0;

  Derived& set_name(const std::string&) { return self(); }
  Derived& set_causal_mask(bool value) { return is_causal = value, self(); }
  Derived& set_attn_scale(float value) { return scale = value, self(); }

 protected:
  Derived& self() { return static_cast<Derived&>(*this); }
};

struct SDPA_attributes : Attention_attributes<SDPA_attributes> {
  SDPA_attributes& set_generate_stats(bool value) { return has_stats = value, *this; }
};

struct SDPA_backward_attributes : Attention_attributes<SDPA_backward_attributes> {
  SDPA_backward_attributes& set_deterministic_algorithm(bool value) {
    return is_deterministic = value, *this;
  }
};

class Graph {
 public:
  using Tensor = std::shared_ptr<Tensor_attributes>;
  struct Node;

  Graph& set_io_data_type(DataType_t type);
  Graph& set_intermediate_data_type(DataType_t type);
  Graph& set_compute_data_type(DataType_t type);
  Graph& set_sm_version(std::int32_t /*version*/) { return *this; }
  Graph& set_device_properties(std::shared_ptr<const DeviceProperties> /*device*/) { return *this; }
  Tensor tensor(const Tensor_attributes& attributes);
  std::array<Tensor, 2> sdpa(Tensor q, Tensor k, Tensor v, SDPA_attributes attributes);
  std::array<Tensor, 3> sdpa_backward(Tensor q, Tensor k, Tensor v, Tensor o, Tensor dO,
                                      Tensor stats, SDPA_backward_attributes attributes);

  error_object validate();
  error_object build_operation_graph(cudnnHandle_t handle);
  error_object create_execution_plans(const std::vector<HeurMode_t>& modes);
  Graph& deselect_numeric_notes(const std::vector<NumericalNote_t>& notes);
  Graph& deselect_workspace_greater_than(std::int64_t bytes);
  error_object check_support(cudnnHandle_t handle);
  error_object build_plans(const cudnnHandle_t& handle, BuildPlanPolicy_t policy);
  error_object get_workspace_size(std::int64_t& bytes) const;
  error_object execute(cudnnHandle_t handle, std::unordered_map<std::int64_t, void*>& pointers,
                       void* workspace) const;

 protected:
  std::int64_t get_fe_workspace_size_subtree() const;

 private:
  std::shared_ptr<Node> node_;
};

}  // namespace graph

}  // namespace cudnn_frontend

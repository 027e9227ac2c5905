// In place of Kokkos with CUDA: what device_cuda.cpp of src/runtime calls, and the files for NCCL
// of src/comm. Instances own streams of the stand-in for CUDA's runtime, and copies wait on these.
#pragma once

#include <cuda_runtime_api.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "doubles/cuda_runtime.hpp"

namespace Kokkos {

struct HostSpace {};
struct CudaSpace {};
struct SharedHostPinnedSpace {};
struct MemoryUnmanaged {};

template <class From, class To>
struct SpaceAccessibility {
  static constexpr bool accessible = std::is_same_v<From, To>;
};

class Cuda {
 public:
  using memory_space = CudaSpace;

  Cuda() : stream_(kzero::doubles::default_stream(), [](cudaStream_t) {}) {}
  explicit Cuda(cudaStream_t owned)
      : stream_(owned, [](cudaStream_t stream) { cudaStreamDestroy(stream); }) {}

  cudaStream_t cuda_stream() const { return stream_.get(); }
  int cuda_device() const { return kzero::doubles::own_device; }
  void fence(const std::string&) const { cudaStreamSynchronize(stream_.get()); }

 private:
  std::shared_ptr<CUstream_st> stream_;
};
using DefaultExecutionSpace = Cuda;

template <class Elements, class Space, class Traits>
class View {
 public:
  using Element = std::remove_pointer_t<Elements>;
  View(Element* data, std::size_t size) : data_(data), size_(size) {}
  Element* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  Element* data_;
  std::size_t size_;
};

template <class Out, class In, class Space, class Traits>
void deep_copy(const Cuda& stream, View<Out*, Space, Traits> out, View<In*, Space, Traits> in) {
  kzero::doubles::enqueue(stream.cuda_stream(),
                          [=] { std::memcpy(out.data(), in.data(), in.size() * sizeof(In)); });
}

inline std::vector<std::function<void()>> finalize_hooks;
inline void push_finalize_hook(std::function<void()> hook) {
  finalize_hooks.push_back(std::move(hook));
}
inline void finalize() {
  for (const auto& hook : std::exchange(finalize_hooks, {})) hook();
}

namespace Experimental {

inline std::vector<Cuda> partition_space(const Cuda&, int) {
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  return {Cuda(stream)};
}

}  // namespace Experimental

}  // namespace Kokkos

// Memory of the activations that the halves of a block keep for backward.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "memory/arenas.hpp"
#include "model/model.hpp"

namespace kzero::model {

/// What a half keeps until backward: everything; its products, from which elementwise and row
/// kernels restore the rest; or its input alone.
enum class Kept { all, products, input };

/// Activations that are kept have memory of their own. Those that are computed again before
/// backward, or that a pass of generation overwrites, share one memory over all layers, by name and
/// size.
class Activations {
 public:
  explicit Activations(memory::Arenas& arenas,
                       memory::Category category = memory::Category::activations)
      : arenas_(arenas), category_(category) {}

  template <class T>
  Matrix<T> take(bool is_kept, const char* name, Index rows, Index columns) {
    const auto allocate = [&] { return arenas_.take<T>(category_, rows * columns); };
    if (is_kept) return Matrix<T>(allocate(), rows, columns);
    const auto [entry, is_new] = shared_.try_emplace({name, rows, columns}, nullptr);
    if (is_new) entry->second = allocate();
    return Matrix<T>(static_cast<T*>(entry->second), rows, columns);
  }

 private:
  memory::Arenas& arenas_;
  memory::Category category_;
  std::map<std::tuple<std::string, Index, Index>, void*> shared_{};
};

}  // namespace kzero::model

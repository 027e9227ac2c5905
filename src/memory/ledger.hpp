// Tracks the current and peak bytes of slabs by category. The ledger itself allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "base/types.hpp"

namespace kzero::memory {

// Memory categories. Every byte kzero owns belongs to one category, in the plan, the ledger and the
// reports.

enum class Category {
  parameters,   // as the model computes with them
  gradients,    // in the same precision
  optimizer,    // fp32 state, with master weights in 16-bit runs
  activations,  // what forward keeps for backward
  recompute,    // inputs kept by activation checkpointing
  buckets,      // constant-size communication buffers (C_B)
  workspace,    // temporaries of a single unit's computation
  io,           // token batches, a step's sums; the copy of the state that checkpoint.asynchronous
                // writes
  offloaded,    // host memory of device builds: offloaded state, batches and sums
                // in transit, staging and copies of checkpoints
};

inline constexpr std::array<std::string_view, 9> category_names{
    "parameters", "gradients", "optimizer", "activations", "recompute",
    "buckets",    "workspace", "io",        "offloaded"};
inline constexpr std::size_t category_count = category_names.size();

constexpr std::size_t position(Category category) { return static_cast<std::size_t>(category); }
constexpr std::string_view name_of(Category category) { return category_names[position(category)]; }

/// Bytes by category.
using Bytes = std::array<Index, category_count>;

class Ledger {
 public:
  void add(Category category, Index bytes);
  void remove(Category category, Index bytes);

  Index now(Category category) const { return now_[position(category)]; }
  Index peak(Category category) const { return peak_[position(category)]; }
  const Bytes& peaks() const { return peak_; }

 private:
  Bytes now_{};
  Bytes peak_{};
};

}  // namespace kzero::memory

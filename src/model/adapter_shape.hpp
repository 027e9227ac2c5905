// The linear layers of a block as its family's files name them, and the low-rank adapters that they
// may have (LoRA, Hu et al., arXiv 2106.09685): y = x W + (alpha / rank) (x A^T) B^T. No memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace kzero::model {

/// The GEMMs of a block, in forward order. Layers that share an input are one GEMM.
enum class Site { qkv, projection, up, down };

/// The columns of a GEMM's output that belong to a layer.
enum class SitePart { all, q, k, v, gate, up };

struct LinearLayer {
  std::string_view path;  // within the block: "self_attn.q_proj"
  Site site;
  SitePart part = SitePart::all;

  /// The last part of the path, which lora.targets contains.
  std::string_view name() const { return path.substr(path.rfind('.') + 1); }
};

/// An adapter on one tensor rank. Its parameters A [r,in] and B [out,r] are adjacent in the block's
/// unit of adapters.
struct AdapterShape {
  LinearLayer layer;
  Index in = 0, out = 0;  // of this rank
  Index column = 0;       // of this rank's output of the GEMM, where the layer's columns begin
  Index begin = 0;        // of A in the unit
  Index copies = 1;       // neighbouring tensor ranks that hold the same rows of B

  /// Row-parallel layers split A by columns and replicate B. The others replicate A and split B by
  /// rows.
  bool is_row_parallel() const {
    return layer.site == Site::projection || layer.site == Site::down;
  }
};

/// The adapters of every block of a model on one tensor rank, in forward order.
struct Adapters {
  Index rank = 0;  // r; 0: none
  float scale = 1;
  std::vector<AdapterShape> layers{};

  bool has(Site site) const {
    for (const AdapterShape& adapter : layers) {
      if (adapter.layer.site == site) return true;
    }
    return false;
  }

  /// The elements of the block's unit of adapters.
  Index elements() const {
    return layers.empty() ? 0 : layers.back().begin + rank * (layers.back().in + layers.back().out);
  }

  /// Returns the first GEMM in forward order that has an adapter.
  Site first() const { return layers.front().layer.site; }
};

}  // namespace kzero::model

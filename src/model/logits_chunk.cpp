#include "model/logits_chunk.hpp"

#include <algorithm>

namespace kzero::model {

namespace {

constexpr Index host_bytes = Index{16} << 20;  // target for a chunk of fp32 logits (C_B)
constexpr Index least_host_rows = 256;         // GEMMs are slower with fewer rows

// A device runs one team per row and must occupy all multiprocessors. It reads and writes the
// weight's gradient once per chunk. 2048 rows are about 15 for each of 132 multiprocessors.
constexpr Index device_bytes = Index{512} << 20;
constexpr Index most_device_rows = 4096, least_device_rows = 2048;

/// In elements: 128 bytes of 16-bit gradients. Every row then begins at a cache line of the device,
/// and GEMM libraries load 16 bytes at a time. Without padding, an odd vocabulary aligns rows to
/// only 2 bytes.
constexpr Index device_stride = 64;

/// In elements: 16 bytes of 16-bit gradients. GEMM libraries may use tensor cores at full speed
/// only if the extents of matrices, too, are multiples of 16 bytes (cuBLAS' documentation, "Tensor
/// Core Usage"). An fp32 run uses no tensor cores.
constexpr Index device_columns = 8;

Index host_rows(Index vocab) { return std::max(least_host_rows, host_bytes / (vocab * 4)); }

Index device_rows(Index vocab) {
  const bool is_small = most_device_rows * vocab * 4 <= device_bytes;
  return is_small ? most_device_rows : least_device_rows;
}

/// The columns that GEMMs compute in addition to the vocabulary's.
Index more_columns(const TransformerShape& s, Dtype type, bool on_device) {
  const bool is_padded = on_device && type != Dtype::fp32;
  return is_padded ? round_up(s.own.vocab, device_columns) - s.own.vocab : 0;
}

}  // namespace

LogitsChunk logits_chunk(Index rows, const TransformerShape& s, Dtype type, bool on_device) {
  const Index vocab = ceil_div(s.vocab, s.tensor.size);
  const Index aim = on_device ? device_rows(vocab) : host_rows(vocab);
  return {std::min(aim, ceil_div(rows, 2)),  // never the full batch, except for a single row
          on_device ? round_up(s.own.vocab, device_stride) : s.own.vocab,
          s.own.vocab + more_columns(s, type, on_device)};
}

Index read_behind_output(const TransformerShape& s, bool on_device) {
  return more_columns(s, Dtype::bf16, on_device) * s.hidden;
}

}  // namespace kzero::model

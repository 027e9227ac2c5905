// The arithmetic of a run: its name, the bits of its products, and its peak.
#pragma once

#include <cstdint>
#include <string>

#include "deck/config.hpp"
#include "grid/process_grid.hpp"
#include "metrics/records.hpp"
#include "tensor/gemm.hpp"

namespace kzero::engine {

/// Returns the arithmetic of this program on this machine: the compiler and instruction set of the
/// kernels, the device or host, the GEMM library, and `model` (may be empty). Runs of equal decks
/// with different arithmetic agree up to rounding errors.
std::string arithmetic_of(const tensor::Gemm& gemm, const std::string& model);

// A matrix product of random operands, used to measure a GEMM back end and to compare its bits.

struct ProductShape {
  Index m = 1, n = 1, k = 1;
};

/// C[m,n] = A[m,k] B[k,n] in one precision. The operands are normally distributed and depend only
/// on the shape and the precision. Zeros would switch few wires. A device would multiply them at a
/// clock rate that it cannot sustain otherwise.
class Product {
 public:
  Product(const tensor::Execution& exec, const ProductShape& shape, Dtype precision);

  void run(tensor::Gemm& gemm) const;

  /// Returns a digest of C. Waits for the stream.
  std::uint64_t digest() const;

  double operations() const;

 private:
  using Bytes = Kokkos::View<std::byte*, tensor::Memory>;

  tensor::Execution exec_;
  ProductShape shape_;
  Dtype precision_;
  Bytes a_, b_, c_;
};

// The peak of a rank: the speed of a large square GEMM in the run's precision while all ranks run.
// The sum over ranks is the denominator of MFU.

/// Chooses the width of the square matrices. On a device, they are wide enough to hide the launch
/// of a kernel. If such a product would take over a second, as happens without a GEMM library, they
/// are small. The width is the same on every rank. Collective over `world`.
Index choose_peak_width(const grid::Group& world, const tensor::Execution& exec, tensor::Gemm& gemm,
                        Dtype precision);

/// Returns the summed peak of all ranks, from the deck or from a measurement. The measurement takes
/// a few tenths of a second. Collective over `world`, which contains all ranks.
metrics::Peak find_peak(const deck::Config& config, const grid::Group& world, tensor::Gemm& gemm);

}  // namespace kzero::engine

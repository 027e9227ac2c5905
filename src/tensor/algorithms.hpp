// Algorithms of a GEMM library that were measured to be faster than its own choice, by product: a
// table for one kind of device and one version of the library, which a file (run.algorithms) holds.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "base/types.hpp"
#include "deck/document.hpp"

namespace kzero::tensor {

/// How a library computes a product, as the values of algorithm_keys.
using Algorithm = std::array<Index, 9>;

/// A number of an Algorithm; `low` and `high` are what the library's type can hold.
struct AlgorithmKey {
  const char* name;
  Index low, high;
};

/// In the order of cuBLASLt's attributes (cublasLtMatmulAlgoConfigAttributes_t).
inline constexpr std::array<AlgorithmKey, 9> algorithm_keys{{{"id", 0, 2147483647},
                                                             {"tile", 0, 4294967295},
                                                             {"split_k", 0, 2147483647},
                                                             {"reduction", 0, 2},
                                                             {"swizzle", 0, 4294967295},
                                                             {"custom", 0, 4294967295},
                                                             {"stages", 0, 4294967295},
                                                             {"inner_shape", 0, 65535},
                                                             {"cluster_shape", 0, 65535}}};

/// Returns whether a fixed order of all additions follows from the algorithm: a sum is not split,
/// or its parts are kept in fp32 and added by a later kernel. Other schemes add parts as they
/// arrive, or round them.
bool adds_in_order(const Algorithm& algorithm);

struct TableEntry {
  Algorithm algorithm{};
  Index calls = 0;  // in the step that was measured
  // Of one product, as measured.
  double heuristic_ms = 0;  // with the library's own choice
  double ms = 0;
};

struct AlgorithmTable {
  std::string device;   // runtime::device_kind()
  std::string library;  // name and version
  std::map<std::string, TableEntry> products{};

  /// Of everything that decides which algorithms a run uses: without the times.
  std::uint64_t digest() const;
};

/// Reads a table. Throws Error(usage) with everything that is wrong with it.
AlgorithmTable read_algorithms(const deck::Source& source);

/// The text that read_algorithms() reads, with a comment about the whole at its top.
std::string as_toml(const AlgorithmTable& table, const std::string& comment);

/// What a measurement has found.
struct MeasuredAlgorithms {
  AlgorithmTable table{};  // of the products that gain
  Index products = 0;
  double heuristic_ms = 0;  // of all calls
  double ms = 0;            // with the table
};

/// A back end's choice of algorithms. By default the library's heuristic chooses.
class AlgorithmChoice {
 public:
  virtual ~AlgorithmChoice() = default;

  /// Takes the table's algorithm for each product that it has, from now on. Throws Error(usage) if
  /// the table is for another device or version.
  virtual void use(const AlgorithmTable& table) = 0;

  /// The number of different products since use(), and how many of them the table has.
  struct Use {
    Index products = 0, from_table = 0;
  };
  virtual Use used() const = 0;

  /// Compares algorithms at the first call of each product from now on, by running them on its
  /// operands. What is accumulated then has no meaning.
  virtual void measure() = 0;
  virtual MeasuredAlgorithms measured() const = 0;
};

}  // namespace kzero::tensor

// The manifest of a checkpoint: what was saved, by which program and run, and which file holds
// which ranges with which checksums. manifest.h5 starts with its own checksum (in the HDF5 user
// block), so that damaged bytes never reach the HDF5 library. If the file exists, the checkpoint is
// complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/format/records.hpp"
#include "checkpoint/format/runs.hpp"
#include "checkpoint/format/state_shard.hpp"
#include "deck/config.hpp"
#include "param/reduced_array.hpp"
#include "param/spec.hpp"

namespace kzero::checkpoint {

inline constexpr Index format_version = 3;  // no other is read
inline constexpr const char* manifest_name = "manifest.h5";
// That of 10,000 ranks with 1,000 parameters has 0.2 GiB.
inline constexpr Index max_manifest_bytes = Index{1} << 30;

struct Parameter {
  std::string name;
  std::vector<Index> shape;  // global, row-major
  bool operator==(const Parameter&) const = default;

  Index elements() const {
    Index product = 1;
    for (const Index extent : shape) product *= extent;
    return product;
  }
};

std::vector<Parameter> parameters_of(const param::Table& table);

/// The offset for a parameter to which an array does not extend; it has no dataset for that array.
inline constexpr Index no_offset = -1;

/// One rank's part of a parameter: a part of a dataset `NAME/ARRAY` for each state array that
/// extends to it. The parts of ranks that share a file are consecutive in the datasets.
struct StoredShard {
  Index parameter = 0;  // position in Manifest::parameters
  std::vector<Run> runs{};
  std::vector<std::uint64_t> checksums{};  // one per entry of Manifest::state_arrays
  std::vector<Index> offsets{};            // likewise, of the part: bytes from the file's start
};

struct ShardFile {
  std::string file;  // name within the checkpoint's folder
  Index bytes = 0;
  std::uint64_t structure = 0;  // checksum of the bytes outside all shards
  std::vector<StoredShard> shards{};
};

struct Manifest {
  std::string kzero_version;  // write() fills in these two
  std::string git_hash;
  std::string deck;                       // the resolved deck, as TOML
  std::optional<AdapterRecord> adapters;  // none if all parameters trained
  deck::Model model;  // its defining keys (deck/architecture.hpp); other keys have defaults
  Index data_ranks = 1;
  Index tensor_ranks = 1;
  Index stage = 0;
  std::string precision;
  Index step = 0;     // steps done
  Index tokens = 0;   // seen in training
  Index samples = 0;  // the next global sample index
  double loss_scale = 1;
  Index scale_good_steps = 0;        // since the last overflow or change of the scale
  Index skipped_steps = 0;           // of all steps done
  Index skipped_in_row = 0;          // up to this step
  std::optional<LossRecord> loss;    // none before the first loss
  std::optional<NormRecord> norms;   // with optimizer.skip_above
  std::string arithmetic;            // of the run that saved it
  std::uint64_t data_digest = 0;     // of everything that decides the order of the training data
  std::uint64_t parameter_hash = 0;  // of all state arrays; filled in by write()
  std::string optimizer = "adamw";   // its name
  Index optimizer_start = 0;         // non-skipped steps done when its state was initialised
  param::StateArrays state_arrays;   // saved of every parameter
  // The state of rows and columns is small, so the manifest holds it: parameter by parameter, array
  // by array.
  param::ReducedArrays reduced_arrays;
  std::vector<float> reduced_state;
  std::vector<Parameter> parameters;
  std::vector<ShardFile> shard_files;  // filled in by write()
};

/// Returns the parameters that a checkpoint with this manifest has to hold, by its model and its
/// adapters alone: engine::saved_parameters, as this folder does not know models.
using ParametersOf = std::function<std::vector<Parameter>(const Manifest&)>;

/// Throws Error(files) with the first parameter of the manifest that is not the one of its model.
/// Everything that reads values or sizes relies on this; `path` is for messages.
void require_parameters(const Manifest& manifest, const ParametersOf& parameters_of_model,
                        const std::filesystem::path& path);

struct LocatedShard {
  Index shard_file = 0;
  const StoredShard* shard = nullptr;
};

/// Returns the shards of each parameter, by its position, in the order of the shard files.
std::vector<std::vector<LocatedShard>> shards_by_parameter(const Manifest& manifest);

/// Writes and syncs manifest.h5 in `folder`, and reads it back.
void write_manifest(const std::filesystem::path& folder, const Manifest& manifest);

/// Parses the bytes of a manifest file; `path` is for messages. Throws Error(files) if the bytes
/// are damaged, of another format version, contain impossible numbers, or are not a manifest.
Manifest parse_manifest(const std::string& bytes, const std::filesystem::path& path);

Manifest read_manifest(const std::filesystem::path& folder);

}  // namespace kzero::checkpoint

// Saves a checkpoint. Does not know the model, the optimizer, the stage or where the numbers come
// from. The steps, in an order in which a crash at any instant leaves a good checkpoint:
//
//   1 begin     a new folder, which nobody takes for a checkpoint
//   2 write     the shard files, each read back and on the disk (shard_file.hpp)
//   3 gather    what every rank wrote; the shards must cover every parameter once
//   4 manifest  says what is where; on the disk, and read back
//   5 rename    the folder gets its name
//   6 latest    names the new checkpoint
//   7 retain    the oldest checkpoints are removed
//
// All ranks take part in steps 1 to 3. The root alone does the rest.
#pragma once

#include <filesystem>
#include <future>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/format/manifest.hpp"
#include "checkpoint/format/shard_file.hpp"
#include "checkpoint/format/state_shard.hpp"
#include "grid/group.hpp"

namespace kzero::checkpoint {

struct Written {
  std::filesystem::path path;           // of the complete checkpoint
  Index bytes = 0;                      // of all its shard files
  std::vector<std::string> problems{};  // of removing old checkpoints; on the root only
  std::uint64_t parameter_hash = 0;     // as in the manifest
};

/// Saves every rank's shards as `folder`/step_<manifest.step>, on the disk and read back before it
/// gets its name, then removes all but the newest `keep` checkpoints (0: keeps all) and the newest
/// sane one. Each `ranks_per_file` consecutive ranks write one file. Collectively the shards must
/// cover every parameter of the manifest once. `manifest` is the same on all ranks, except for what
/// write() fills in. Throws the same Error on every rank, with the file at fault, if any rank
/// fails: then no trace stays and earlier checkpoints are unchanged. The caller holds the folder's
/// lock (FolderLock); without it nothing is damaged, but runs may remove one another's checkpoints.
/// Collective over `world`.
Written write(const grid::Group& world, const std::filesystem::path& folder, Manifest manifest,
              std::span<const StateShard> mine, Index keep, Index ranks_per_file = 1);

/// Writes a checkpoint with one file per rank in a thread while the caller continues; a thread of
/// the root's removes old checkpoints. Only steps that communicate are left to the caller: the
/// start and the end. At most one at a time, and nobody else may use HDF5 until tidied() returns.
class BackgroundWrite {
 public:
  /// Begins the write. The shards' memory must stay unchanged until finish() returns. Collective
  /// over `world`, which must outlive this.
  BackgroundWrite(const grid::Group& world, const std::filesystem::path& folder, Manifest manifest,
                  std::vector<StateShard> mine, Index keep);

  /// Waits for the threads. Without finish() the checkpoint stays incomplete, and is removed by the
  /// next run.
  ~BackgroundWrite() = default;

  /// Returns whether this rank's file is written, or its writing has failed.
  bool ready() const;

  /// Waits for all ranks' files and completes the checkpoint, except for the removal of others,
  /// which begins; throws as write() does. Call it once. Collective over `world`.
  Written finish();

  /// Waits until others are removed; returns messages about what could not be. Call it once, after
  /// finish().
  std::vector<std::string> tidied();

 private:
  const grid::Group& world_;
  std::filesystem::path folder_;
  Manifest manifest_;
  std::vector<StateShard> mine_;
  Index keep_;
  std::filesystem::path partial_;
  std::future<LocalPart> part_;  // destroyed before the objects that its thread uses
  std::future<std::vector<std::string>> retaining_;  // on the root
};

}  // namespace kzero::checkpoint

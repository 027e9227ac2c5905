// Saves a checkpoint. Does not know the model, the optimizer, the stage or the source of the
// numbers. The order of the steps ensures that a crash at any time leaves a good checkpoint:
//
//   1 begin     a new folder, which is not yet a checkpoint
//   2 write     the shard files, each read back and on the disk (shard_file.hpp)
//   3 gather    every rank's record; the shards must cover every parameter once
//   4 manifest  locates all data; on the disk, and read back
//   5 rename    the folder gets its name
//   6 latest    names the new checkpoint
//   7 retain    the oldest checkpoints are removed
//
// All ranks run steps 1 to 3. Only the root runs the later steps.
#pragma once

#include <filesystem>
#include <future>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/folder/retention.hpp"
#include "checkpoint/format/manifest.hpp"
#include "checkpoint/format/shard_file.hpp"
#include "checkpoint/format/state_shard.hpp"
#include "grid/group.hpp"

namespace kzero::checkpoint {

struct Written {
  std::filesystem::path path;           // of the complete checkpoint
  Index bytes = 0;                      // of all its shard files
  std::vector<std::string> problems{};  // from removing old checkpoints; on the root only
  std::uint64_t parameter_hash = 0;     // as in the manifest
};

/// Saves every rank's shards as `folder`/step_<manifest.step>. They are on the disk and read back
/// before the folder gets its name. Then removes all checkpoints except those of `keep` and the
/// newest sane one. Each `ranks_per_file` consecutive ranks write one file. Together the shards
/// must cover every parameter of the manifest once. `manifest` is the same on all ranks,
/// except for the fields that write() fills in. If any rank fails, throws the same Error on every
/// rank, with the file at fault, leaves no trace and does not change earlier checkpoints. The
/// caller holds the folder's lock (FolderLock). Without it nothing is damaged, but runs may remove
/// one another's checkpoints. Collective over `world`.
Written write(const grid::Group& world, const std::filesystem::path& folder, Manifest manifest,
              std::span<const StateShard> mine, Keep keep, Index ranks_per_file = 1);

/// Writes a checkpoint with one file per rank in a thread while the caller continues. A thread of
/// the root removes old checkpoints. The caller only runs the steps that communicate: start and
/// end. At most one write at a time. No other code may use HDF5 until tidied() returns.
class BackgroundWrite {
 public:
  /// Begins the write. The shards' memory must not change until finish() returns. Collective over
  /// `world`, which must outlive this object.
  BackgroundWrite(const grid::Group& world, const std::filesystem::path& folder, Manifest manifest,
                  std::vector<StateShard> mine, Keep keep);

  /// Waits for the threads. Without finish() the checkpoint stays incomplete, and the next run
  /// removes it.
  ~BackgroundWrite() = default;

  /// Returns whether this rank has written its file or failed to.
  bool ready() const;

  /// Waits for all ranks' files and completes the checkpoint. Only begins to remove old
  /// checkpoints. Throws as write() does. Call it once. Collective over `world`.
  Written finish();

  /// Waits until old checkpoints are removed. Returns messages about failures. Call it once, after
  /// finish().
  std::vector<std::string> tidied();

 private:
  const grid::Group& world_;
  std::filesystem::path folder_;
  Manifest manifest_;
  std::vector<StateShard> mine_;
  Keep keep_;
  std::filesystem::path partial_;
  std::future<LocalPart> part_;  // destroyed before the objects that its thread uses
  std::future<std::vector<std::string>> retaining_;  // on the root
};

}  // namespace kzero::checkpoint

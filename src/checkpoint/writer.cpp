#include "checkpoint/writer.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.hpp"
#include "base/timeline.hpp"
#include "base/version.hpp"
#include "checkpoint/folder/retention.hpp"
#include "checkpoint/format/shards_to_store.hpp"
#include "checkpoint/format/validate.hpp"
#include "grid/agreement.hpp"
#include "storage/files.hpp"
#include "storage/hdf5_file.hpp"

namespace kzero::checkpoint {

namespace {

namespace fs = std::filesystem;

/// Creates a new folder for the files. No other process writes into it. Collective over `world`.
fs::path begin(const grid::Group& world, const fs::path& folder, const Manifest& manifest) {
  std::string partial;
  grid::collectively(world, [&] {
    require_state_arrays(manifest.state_arrays, folder);
    if (!world.is_root()) return;
    partial = partial_path(folder, manifest.step).string();
    std::error_code error;
    storage::create_folders_durably(folder);
    const bool is_new = fs::create_directory(partial, error);
    KZERO_REQUIRE(is_new, ExitCode::files, "{}: cannot be created ({})", partial,
                  error ? error.message() : "it exists");
  });
  return world.broadcast(partial);
}

/// A checkpoint with a hole is worse than none.
void check_coverage(const Manifest& manifest) {
  const std::string problem = coverage_problem(manifest);
  KZERO_REQUIRE(problem.empty(), ExitCode::other, "internal error: {}", problem);
}

/// Completes the root's manifest with the ranks' records of their shard files.
void fill_in(Manifest& manifest, const std::vector<std::string>& records) {
  manifest.kzero_version = version();
  manifest.git_hash = git_hash();
  for (const std::string& record : records) {
    if (record.empty()) continue;  // another rank reports the file
    const auto name = shard_file_name(std::ssize(manifest.shard_files));
    manifest.shard_files.push_back(unpack(record, name));
  }
}

/// Returns messages about failures. They do not harm the checkpoint, which is complete by now.
std::vector<std::string> renew_and_retain(const fs::path& folder, Index step, Keep keep,
                                          Index sane_step) {
  try {
    storage::write_durably(folder / "latest", folder_name(step) + "\n");  // 6 latest
    return retain(folder, step, keep, sane_step);                         // 7 retain
  } catch (const std::exception& error) {
    return {error.what()};
  }
}

/// Steps 2 to 7 of a save that has begun. write_file() returns this rank's part of a shard file
/// that is on the disk. tidy() runs, or starts, renew_and_retain() on the root. Collective over
/// `world`.
template <class WriteFile, class Tidy>
Written save(const grid::Group& world, const fs::path& folder, const fs::path& partial,
             Manifest& manifest, const WriteFile& write_file, const Tidy& tidy) {
  Written written{.path = folder / folder_name(manifest.step)};
  try {
    // 2 write
    LocalPart part;
    grid::collectively(world, [&] { part = write_file(); });
    // 3 gather
    std::uint64_t sums[] = {static_cast<std::uint64_t>(part.shard_file.bytes), part.parameter_hash};
    world.sum(sums);
    written.bytes = static_cast<Index>(sums[0]);
    written.parameter_hash = manifest.parameter_hash = sums[1];
    const auto records = world.gather(part.shard_file.file.empty() ? "" : pack(part.shard_file));
    grid::collectively(world, [&] {
      if (!world.is_root()) return;
      fill_in(manifest, records);
      check_coverage(manifest);
      write_manifest(partial, manifest);  // 4 manifest
      install(partial, written.path);     // 5 rename
    });
    manifest.shard_files = {};  // all ranks' files; the caller may keep the manifest
    // 6 latest, 7 retain
    grid::collectively(world, [&] {
      if (world.is_root()) written.problems = tidy();
    });
    return written;
  } catch (const Error&) {
    std::error_code ignored;
    if (world.is_root()) fs::remove_all(partial, ignored);
    throw;
  }
}

}  // namespace

Written write(const grid::Group& world, const fs::path& folder, Manifest manifest,
              std::span<const StateShard> mine, Keep keep, Index ranks_per_file) {
  const Index number = world.rank() / ranks_per_file;
  const grid::Group file_group = world.part(number, "file");
  const fs::path partial = begin(world, folder, manifest);  // 1 begin
  // Calls that are collective over a file's ranks end alike on all of them. All ranks of the world
  // can therefore agree on how they ended.
  const auto write_file = [&] {
    const std::string name = shard_file_name(number);
    return file_group.size() == 1
               ? write_shard_file(partial, name, manifest, mine)
               : write_shared_shard_file(file_group, partial, name, manifest, mine);
  };
  return save(world, folder, partial, manifest, write_file, [&] {
    return renew_and_retain(folder, manifest.step, keep, sane_step_of(manifest));
  });
}

BackgroundWrite::BackgroundWrite(const grid::Group& world, const fs::path& folder,
                                 Manifest manifest, std::vector<StateShard> mine, Keep keep)
    : world_(world),
      folder_(folder),
      manifest_(std::move(manifest)),
      mine_(std::move(mine)),
      keep_(keep),
      partial_(begin(world, folder, manifest_)) {  // 1 begin
  storage::start_hdf5();  // it makes MPI calls, which the thread must not make
  part_ = std::async(std::launch::async, [this] {
    name_lane("checkpoint writer");
    const TimelineSpan span(SpanKind::file, [] { return "kzero::checkpoint::write_shard_file"; });
    return write_shard_file(partial_, shard_file_name(world_.rank()), manifest_, mine_);
  });
}

bool BackgroundWrite::ready() const {
  return part_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

Written BackgroundWrite::finish() {
  const auto write_file = [&] { return part_.get(); };
  return save(world_, folder_, partial_, manifest_, write_file, [&] {
    retaining_ = std::async(std::launch::async, renew_and_retain, folder_, manifest_.step, keep_,
                            sane_step_of(manifest_));
    return std::vector<std::string>{};
  });
}

std::vector<std::string> BackgroundWrite::tidied() {
  return retaining_.valid() ? retaining_.get() : std::vector<std::string>{};
}

}  // namespace kzero::checkpoint

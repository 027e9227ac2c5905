#include "checkpoint/writer.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.hpp"
#include "base/timeline.hpp"
#include "base/version.hpp"
#include "checkpoint/folder/retention.hpp"
#include "checkpoint/format/parameter_hash.hpp"
#include "checkpoint/format/record.hpp"
#include "checkpoint/format/validate.hpp"
#include "grid/agreement.hpp"
#include "storage/files.hpp"
#include "storage/hdf5_file.hpp"

namespace kzero::checkpoint {

namespace {

namespace fs = std::filesystem;

/// Creates a new folder for the files, which nobody else writes into. Collective over `world`.
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

void remove_partial(const grid::Group& world, const fs::path& partial) {
  std::error_code ignored;
  if (world.is_root()) fs::remove_all(partial, ignored);
}

/// Checks that the shards cover every element of every parameter exactly once: a checkpoint with a
/// hole is worse than none. Ranges are expanded for one parameter at a time.
void check_coverage(const Manifest& manifest) {
  const auto held = shards_by_parameter(manifest);
  for (std::size_t p = 0; p < held.size(); ++p) {
    std::vector<Range> ranges;
    for (const LocatedShard& part : held[p]) {
      const auto own = expand(part.shard->runs);
      ranges.insert(ranges.end(), own.begin(), own.end());
    }
    std::ranges::sort(ranges, {}, &Range::begin);
    Index end = 0;
    for (const Range& range : ranges) {
      if (range.begin != end) break;
      end += range.count;
    }
    const Parameter& parameter = manifest.parameters[p];
    KZERO_REQUIRE(end == parameter.elements() && elements_of(ranges) == end, ExitCode::other,
                  "internal error: the ranks' ranges of {} do not cover its {} elements once "
                  "(element {} is the first to be missing or doubled)",
                  parameter.name, parameter.elements(), end);
  }
}

/// Gathers the ranks' records on the root.
void fill_in(Manifest& manifest, const std::vector<std::string>& shard_files) {
  manifest.kzero_version = version();
  manifest.git_hash = git_hash();
  for (const std::string& text : shard_files) {
    if (text.empty()) continue;
    const auto name = shard_file_name(static_cast<Index>(manifest.shard_files.size()));
    manifest.shard_files.push_back(unpack(text, name));
  }
}

/// Steps 1 to 4, each `ranks_per_file` consecutive ranks together. Collective over `world`.
LocalPart save_part(const grid::Group& world, const fs::path& partial, const Manifest& manifest,
                    std::span<const StateShard> mine, Index ranks_per_file) {
  const Index number = world.rank() / ranks_per_file;
  const std::string name = shard_file_name(number);
  const grid::Group file_group = world.part(number, "file");
  LocalPart part;
  // Calls that are collective over a file's ranks end alike on them, so they may be part of this.
  grid::collectively(world, [&] {
    part = file_group.size() == 1
               ? write_shard_file(partial, name, manifest, mine)
               : write_shared_shard_file(file_group, partial, name, manifest, mine);
  });
  return part;
}

/// Step 5: from shard files to a checkpoint. Collective over `world`.
Written publish(const grid::Group& world, const fs::path& folder, const fs::path& partial,
                Manifest manifest, const LocalPart& part) {
  Written written{.path = folder / folder_name(manifest.step)};
  written.bytes = static_cast<Index>(world.sum(static_cast<double>(part.shard_file.bytes)));
  const auto shard_files = world.gather(part.shard_file.file.empty() ? "" : pack(part.shard_file));
  manifest.parameter_hash = written.parameter_hash = sum_of_hashes(world, part.parameter_hash);
  grid::collectively(world, [&] {
    if (!world.is_root()) return;
    fill_in(manifest, shard_files);
    check_coverage(manifest);
    write_manifest(partial, manifest);
    install(partial, written.path);
  });
  return written;
}

/// Step 6, which may fail without harm to the checkpoint that is there by now; messages of what
/// did.
std::vector<std::string> renew_and_retain(const fs::path& folder, Index step, Index keep,
                                          Index sane_step) {
  try {
    storage::write_durably(folder / "latest", folder_name(step) + "\n");
    return retain(folder, step, keep, sane_step);
  } catch (const std::exception& error) {
    return {error.what()};
  }
}

}  // namespace

Written write(const grid::Group& world, const fs::path& folder, Manifest manifest,
              std::span<const StateShard> mine, Index keep, Index ranks_per_file) {
  const Index step = manifest.step, sane_step = sane_step_of(manifest);
  const fs::path partial = begin(world, folder, manifest);
  try {
    const LocalPart part = save_part(world, partial, manifest, mine, ranks_per_file);
    Written written = publish(world, folder, partial, std::move(manifest), part);
    grid::collectively(world, [&] {
      if (world.is_root()) written.problems = renew_and_retain(folder, step, keep, sane_step);
    });
    return written;
  } catch (const Error&) {
    remove_partial(world, partial);
    throw;
  }
}

BackgroundWrite::BackgroundWrite(const grid::Group& world, const fs::path& folder,
                                 Manifest manifest, std::vector<StateShard> mine, Index keep)
    : world_(world),
      folder_(folder),
      manifest_(std::move(manifest)),
      mine_(std::move(mine)),
      keep_(keep),
      partial_(begin(world, folder, manifest_)) {
  storage::start_hdf5();  // which makes MPI calls, as the thread must not
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
  const Index step = manifest_.step, sane_step = sane_step_of(manifest_);
  try {
    LocalPart part;
    grid::collectively(world_, [&] { part = part_.get(); });
    Written written = publish(world_, folder_, partial_, std::move(manifest_), part);
    if (world_.is_root())
      retaining_ =
          std::async(std::launch::async, renew_and_retain, folder_, step, keep_, sane_step);
    return written;
  } catch (const Error&) {
    remove_partial(world_, partial_);
    throw;
  }
}

std::vector<std::string> BackgroundWrite::tidied() {
  return retaining_.valid() ? retaining_.get() : std::vector<std::string>{};
}

}  // namespace kzero::checkpoint

#include "checkpoint/folder/retention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string_view>
#include <tuple>

#include "base/error.hpp"
#include "checkpoint/format/manifest.hpp"
#include "storage/files.hpp"

namespace kzero::checkpoint {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "step_";
constexpr const char* partial_suffix = ".partial";
constexpr const char* replaced_suffix = ".replaced";

enum class Kind { complete, partial, replaced };

struct Entry {
  Index step = 0;
  Kind kind = Kind::complete;
  fs::path path;
};

/// Matches ".partial", or the same after a writer's mark: ".1f2e3d4c.partial".
bool is_partial(std::string_view suffix) {
  if (!suffix.ends_with(partial_suffix)) return false;
  const auto mark = suffix.substr(0, suffix.size() - std::string_view(partial_suffix).size());
  const auto is_hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  return mark.empty() || (mark.front() == '.' && std::ranges::all_of(mark.substr(1), is_hex));
}

std::optional<Entry> parse(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(prefix)) return std::nullopt;
  Entry entry{.path = path};
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, entry.step);
  const std::string_view suffix(rest, end);
  if (is_partial(suffix)) entry.kind = Kind::partial;
  if (suffix == replaced_suffix) entry.kind = Kind::replaced;
  const bool known = suffix.empty() || entry.kind != Kind::complete;
  if (error != std::errc{} || entry.step < 0 || !known) return std::nullopt;
  return entry;
}

/// Sorts by descending step. For one step the complete checkpoint comes first.
std::vector<Entry> entries_of(const fs::path& folder) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (auto entry = parse(it->path())) entries.push_back(std::move(*entry));
  }
  KZERO_REQUIRE(!error, ExitCode::files, "{}: the folder of checkpoints cannot be listed ({})",
                folder.string(), error.message());
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return std::tuple(-a.step, a.kind, a.path) < std::tuple(-b.step, b.kind, b.path);
  });
  return entries;
}

/// The steps of the first checkpoints at or after each multiple of `every`. `entries` are by
/// descending step.
std::set<Index> firsts_of(const std::vector<Entry>& entries, Index every) {
  std::map<Index, Index> firsts;  // by multiple
  if (every == 0) return {};
  for (const Entry& entry : entries)
    if (entry.kind == Kind::complete) firsts[entry.step / every] = entry.step;
  firsts.erase(0);
  std::set<Index> steps;
  for (const auto& [multiple, step] : firsts) steps.insert(step);
  return steps;
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  KZERO_REQUIRE(!error, ExitCode::files, "{}: cannot be removed ({})", path.string(),
                error.message());
}

}  // namespace

std::string folder_name(Index step) { return fmt::format("{}{:08}", prefix, step); }

fs::path with_suffix(fs::path path, const char* suffix) { return path += suffix; }

fs::path partial_path(const fs::path& folder, Index step) {
  return folder /
         fmt::format("{}.{:08x}{}", folder_name(step), std::random_device()(), partial_suffix);
}

void require_named_after(const fs::path& checkpoint, Index step) {
  const auto entry = parse(checkpoint.has_filename() ? checkpoint : checkpoint.parent_path());
  KZERO_REQUIRE(!entry || entry->step == step, ExitCode::files,
                "{}: its manifest is that of step {}; a folder that was renamed needs its name {} "
                "back",
                checkpoint.string(), step, folder_name(step));
}

std::optional<Manifest> manifest_if_complete(const fs::path& path) {
  try {
    Manifest manifest = read_manifest(path);
    require_named_after(path, manifest.step);
    for (const ShardFile& shard_file : manifest.shard_files) {
      std::error_code error;
      if (fs::file_size(path / shard_file.file, error) !=
          static_cast<std::uintmax_t>(shard_file.bytes)) {
        return std::nullopt;
      }
    }
    return manifest;
  } catch (const Error&) {
    return std::nullopt;
  }
}

Index sane_step_of(const Manifest& manifest) {
  return manifest.loss ? manifest.loss->sane_step : every_step;
}

bool is_sane(const Manifest& manifest, Index sane_step) {
  const bool was_within = sane_step_of(manifest) >= manifest.step - 1;
  return was_within && manifest.step <= sane_step && manifest.skipped_in_row == 0;
}

void require_folder_of_checkpoints(const fs::path& folder) {
  std::error_code ignored;
  KZERO_REQUIRE(!fs::exists(folder / manifest_name, ignored), ExitCode::usage,
                "{}: is a checkpoint itself, not a folder of checkpoints; {} would be one",
                folder.string(),
                (folder.has_filename() ? folder : folder.parent_path()).parent_path().string());
}

std::vector<fs::path> candidates(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder / manifest_name, ignored)) return {folder};
  if (!fs::exists(folder, ignored)) return {};
  std::vector<fs::path> paths;
  for (const Entry& entry : entries_of(folder)) {
    if (entry.kind != Kind::partial) paths.push_back(entry.path);
  }
  return paths;
}

std::optional<fs::path> newest_sane(const fs::path& folder, Index newest, Index sane_step) {
  for (const Entry& entry : entries_of(folder)) {
    if (entry.kind != Kind::complete || entry.step > newest) continue;
    const auto manifest = manifest_if_complete(entry.path);
    if (manifest && is_sane(*manifest, sane_step)) return entry.path;
  }
  return std::nullopt;
}

void remove_stale(const fs::path& folder) {
  const std::vector<Entry> entries = entries_of(folder);
  const bool stale =
      std::ranges::any_of(entries, [](const Entry& e) { return e.kind != Kind::complete; });
  // The process that renamed these may have died before the names were on the disk.
  if (stale) storage::sync_to_disk(folder);
  for (const Entry& entry : entries) {
    if (entry.kind == Kind::partial) remove_tree(entry.path);
    if (entry.kind != Kind::replaced) continue;
    const fs::path plain = folder / folder_name(entry.step);
    if (manifest_if_complete(plain) || !manifest_if_complete(entry.path)) {
      remove_tree(entry.path);
    } else {
      remove_tree(plain);
      storage::rename_durably(entry.path, plain);
    }
  }
}

void install(const fs::path& partial, const fs::path& target) {
  storage::sync_to_disk(partial);
  if (!fs::exists(target)) {
    storage::rename_durably(partial, target);
    return;
  }
  const fs::path old = with_suffix(target, replaced_suffix);
  storage::rename_durably(target, old);
  try {
    storage::rename_durably(partial, target);
  } catch (const Error&) {
    std::error_code ignored;
    fs::rename(old, target, ignored);
    throw;
  }
  std::error_code left_to_the_next_write;
  fs::remove_all(old, left_to_the_next_write);
}

std::vector<std::string> retain(const fs::path& folder, Index newest, Keep keep, Index sane_step) {
  std::vector<std::string> problems;
  if (keep.newest == 0) return problems;
  Index kept = 0;
  bool has_sane = false;
  const std::vector<Entry> entries = entries_of(folder);
  const std::set<Index> firsts = firsts_of(entries, keep.every);
  for (const Entry& entry : entries) {
    if (entry.kind != Kind::complete || entry.step > newest) continue;
    // Manifests take time to read, and there may be many such checkpoints.
    const bool stays = firsts.contains(entry.step);
    if (stays && has_sane && kept >= keep.newest) continue;
    const auto manifest = manifest_if_complete(entry.path);
    if (!manifest) continue;
    const bool counts = manifest->skipped_in_row == 0;
    const bool is_newest_sane = !has_sane && is_sane(*manifest, sane_step);
    has_sane = has_sane || is_newest_sane;
    if (counts ? ++kept <= keep.newest : kept < keep.newest || entry.step == newest) continue;
    if (is_newest_sane || stays) continue;
    try {
      // Renames the checkpoint first to a name that no run reads, so that an interrupted removal
      // leaves no damaged checkpoint.
      const fs::path dying = partial_path(folder, entry.step);
      storage::rename_durably(entry.path, dying);
      remove_tree(dying);
    } catch (const Error& error) {
      problems.emplace_back(error.what());
    }
  }
  return problems;
}

}  // namespace kzero::checkpoint

#include "checkpoint/retention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <string_view>
#include <tuple>

#include "base/error.hpp"
#include "checkpoint/files.hpp"
#include "checkpoint/manifest.hpp"

namespace kzero::checkpoint {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "step_";
constexpr const char* partial_suffix = ".partial";
constexpr const char* replaced_suffix = ".replaced";

struct Entry {
  Index step = 0;
  std::string suffix{};
  fs::path path;
};

std::optional<Entry> parse(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(prefix)) return std::nullopt;
  Entry entry{.path = path};
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, entry.step);
  entry.suffix.assign(rest, end);
  const bool known =
      entry.suffix.empty() || entry.suffix == partial_suffix || entry.suffix == replaced_suffix;
  if (error != std::errc{} || entry.step < 0 || !known) return std::nullopt;
  return entry;
}

/// Falling steps; for one step the plain name before its suffixed ones.
std::vector<Entry> entries_of(const fs::path& folder) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (auto entry = parse(it->path())) entries.push_back(std::move(*entry));
  }
  KZERO_REQUIRE(!error, ExitCode::files, "{}: the folder of checkpoints cannot be listed ({})",
                folder.string(), error.message());
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return std::tuple(-a.step, a.suffix) < std::tuple(-b.step, b.suffix);
  });
  return entries;
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  KZERO_REQUIRE(!error, ExitCode::files, "{}: cannot be removed ({})", path.string(),
                error.message());
}

/// All there, as far as names and sizes tell.
bool looks_complete(const fs::path& path) {
  try {
    for (const Shard& shard : read_manifest(path).shards) {
      std::error_code error;
      if (fs::file_size(path / shard.file, error) != static_cast<std::uintmax_t>(shard.bytes)) {
        return false;
      }
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string folder_name(Index step) { return fmt::format("{}{:08}", prefix, step); }

fs::path with_suffix(fs::path path, const char* suffix) { return path += suffix; }

std::vector<fs::path> candidates(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder / manifest_name, ignored)) return {folder};
  if (!fs::exists(folder, ignored)) return {};
  std::vector<fs::path> paths;
  for (const Entry& entry : entries_of(folder)) {
    if (entry.suffix != partial_suffix) paths.push_back(entry.path);
  }
  return paths;
}

void remove_stale(const fs::path& folder) {
  const std::vector<Entry> entries = entries_of(folder);
  const bool stale = std::ranges::any_of(entries, [](const Entry& e) { return !e.suffix.empty(); });
  // Whoever gave them these names may have died before they were safe.
  if (stale) sync_to_disk(folder);
  for (const Entry& entry : entries) {
    if (entry.suffix == partial_suffix) remove_tree(entry.path);
    if (entry.suffix != replaced_suffix) continue;
    const fs::path plain = folder / folder_name(entry.step);
    if (looks_complete(plain) || !looks_complete(entry.path)) {
      remove_tree(entry.path);
    } else {
      remove_tree(plain);
      rename_durably(entry.path, plain);
    }
  }
}

void install(const fs::path& partial, const fs::path& target) {
  sync_to_disk(partial);
  if (!fs::exists(target)) {
    rename_durably(partial, target);
    return;
  }
  const fs::path old = with_suffix(target, replaced_suffix);
  rename_durably(target, old);
  try {
    rename_durably(partial, target);
  } catch (const Error&) {
    std::error_code ignored;
    fs::rename(old, target, ignored);
    throw;
  }
  std::error_code left_to_the_next_write;
  fs::remove_all(old, left_to_the_next_write);
}

std::vector<std::string> retain(const fs::path& folder, Index newest, Index keep) {
  std::vector<std::string> problems;
  Index kept = 0;
  for (const Entry& entry : entries_of(folder)) {
    if (keep == 0 || !entry.suffix.empty() || entry.step > newest) continue;
    if (!looks_complete(entry.path) || ++kept <= keep) continue;
    try {
      // A name that nobody reads, first: a removal that is cut short leaves no damaged checkpoint.
      const fs::path dying = with_suffix(entry.path, partial_suffix);
      rename_durably(entry.path, dying);
      remove_tree(dying);
    } catch (const Error& error) {
      problems.emplace_back(error.what());
    }
  }
  return problems;
}

}  // namespace kzero::checkpoint

#include "checkpoint/folder/origin.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <sstream>
#include <utility>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/printable.hpp"
#include "storage/files.hpp"

namespace kzero::checkpoint {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view list_title = "kzero origin 1";
constexpr Index max_list_bytes = Index{64} << 10;
constexpr std::array model_names{"config.json", "generation_config.json"};

std::string shown(const fs::path& path) { return printable(path.string()); }

std::string checksum_of(const std::string& bytes) {
  return format_checksum(checksum(std::as_bytes(std::span(bytes))));
}

bool is_plain(std::string_view name) {
  constexpr std::size_t max_characters = 128;
  const auto is_allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= max_characters && name.front() != '.' &&
         name != origin_list_name && std::ranges::all_of(name, is_allowed);
}

bool is_name(std::string_view name) {
  const std::string folder = std::string(templates_name) + '/';
  return is_plain(name.starts_with(folder) ? name.substr(folder.size()) : name);
}

/// A line of the list.
struct Listed {
  std::string name, checksum;
  Index bytes = 0;
};

void require_limits(const fs::path& folder, const std::vector<Listed>& entries) {
  Index total = 0;
  for (const Listed& entry : entries) {
    KZERO_REQUIRE(is_name(entry.name), ExitCode::files,
                  "{}: {} is not a name that a file of a model's origin may have", shown(folder),
                  printable(entry.name));
    KZERO_REQUIRE(entry.bytes >= 0 && entry.bytes <= max_origin_file_bytes, ExitCode::files,
                  "{}: has {} bytes; a file of a model's origin has at most {}",
                  shown(folder / entry.name), entry.bytes, max_origin_file_bytes);
    total += entry.bytes;
  }
  KZERO_REQUIRE(entries.size() <= max_origin_files && total <= max_origin_bytes, ExitCode::files,
                "{}: has {} files of {} bytes; a model's origin has at most {} files of {} bytes",
                shown(folder), entries.size(), total, max_origin_files, max_origin_bytes);
}

std::vector<Listed> read_list(const fs::path& folder) {
  const fs::path path = folder / origin_list_name;
  std::istringstream lines(load_file(path, max_list_bytes));
  std::string line;
  KZERO_REQUIRE(std::getline(lines, line) && line == list_title, ExitCode::files,
                "{}: begins with {}, not with \"{}\"", shown(path), printable(line), list_title);
  std::vector<Listed> entries;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    Listed entry;
    std::string rest;
    const bool is_good = (words >> entry.checksum >> entry.bytes >> entry.name) && !(words >> rest);
    KZERO_REQUIRE(is_good, ExitCode::files, "{}: {} is not a checksum, a size and a name",
                  shown(path), printable(line));
    entries.push_back(std::move(entry));
  }
  require_limits(folder, entries);
  return entries;
}

OriginFile read_entry(const fs::path& folder, const Listed& entry) {
  const fs::path path = folder / entry.name;
  std::error_code ignored;
  KZERO_REQUIRE(!fs::is_symlink(path, ignored), ExitCode::files,
                "{}: is a link; a model's origin has regular files", shown(path));
  OriginFile file{entry.name, load_file(path, max_origin_file_bytes)};
  const bool is_same = static_cast<Index>(file.bytes.size()) == entry.bytes &&
                       checksum_of(file.bytes) == entry.checksum;
  KZERO_REQUIRE(is_same, ExitCode::files,
                "{}: is not the file that {} lists; copy it again from where the model is from, or "
                "remove the folder {} and name a tokenizer with --tokenizer",
                shown(path), origin_list_name, shown(folder));
  return file;
}

std::vector<Listed> list_of(const Origin& origin) {
  std::vector<Listed> entries;
  for (const OriginFile& file : origin.files)
    entries.push_back({file.name, checksum_of(file.bytes), static_cast<Index>(file.bytes.size())});
  return entries;
}

void remove_if_there(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  KZERO_REQUIRE(!error, ExitCode::files, "{}: cannot be removed ({})", shown(path),
                error.message());
}

/// The files of a folder that are as its list says. The next run replaces the others.
Origin intact_files(const fs::path& folder) {
  Origin origin;
  std::error_code ignored;
  if (!fs::exists(folder / origin_list_name, ignored)) return origin;
  try {
    for (const Listed& entry : read_list(folder)) {
      try {
        origin.files.push_back(read_entry(folder, entry));
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
    return {};
  }
  return origin;
}

/// Whether both have the file, with other contents.
bool differ_in(const char* name, const Origin& a, const Origin& b) {
  const std::string *in_a = a.find(name), *in_b = b.find(name);
  return in_a != nullptr && in_b != nullptr && *in_a != *in_b;
}

/// Adds the files of `second` that `first` lacks. Those of another model or tokenizer stay away.
Origin merged(Origin first, const Origin& second) {
  const bool has_other_model = differ_in("config.json", first, second);
  const bool has_other_tokenizer = differ_in("tokenizer.json", first, second);
  for (const OriginFile& file : second.files) {
    const bool is_other = is_of_model(file.name) ? has_other_model : has_other_tokenizer;
    if (!is_other && first.find(file.name) == nullptr) first.files.push_back(file);
  }
  std::ranges::sort(first.files, {}, &OriginFile::name);
  return first;
}

/// Refuses what somebody else put at the folder's place, and marks the folder as kzero's.
void prepare_folder(const fs::path& folder) {
  std::error_code ignored;
  KZERO_REQUIRE(!fs::is_symlink(folder, ignored), ExitCode::files,
                "{}: is a link; the files that a model brought need a folder", shown(folder));
  const fs::path list = folder / origin_list_name;
  if (fs::exists(list, ignored)) return;
  KZERO_REQUIRE(!fs::exists(folder, ignored) || fs::is_empty(folder, ignored), ExitCode::files,
                "{}: was not made by kzero, as it has no {}; move it elsewhere", shown(folder),
                origin_list_name);
  storage::create_folders_durably(folder);
  storage::write_durably(list, std::string(list_title) + '\n');
}

}  // namespace

const std::string* Origin::find(std::string_view name) const {
  const auto found = std::ranges::find(files, name, &OriginFile::name);
  return found == files.end() ? nullptr : &found->bytes;
}

std::string* Origin::find(std::string_view name) {
  return const_cast<std::string*>(std::as_const(*this).find(name));
}

bool is_of_model(std::string_view name) {
  return std::ranges::find(model_names, name) != model_names.end();
}

fs::path origin_folder(const fs::path& checkpoint) {
  fs::path plain = fs::absolute(checkpoint).lexically_normal();  // "." and "STEP/." have a parent
  if (!plain.has_filename()) plain = plain.parent_path();
  for (const fs::path& folder : {plain, plain.parent_path()}) {
    fs::path origin = folder / origin_name;
    std::error_code error;
    const auto bytes = fs::file_size(origin / origin_list_name, error);
    if (!error && bytes > list_title.size() + 1) return origin;
  }
  return {};
}

Origin read_origin(const fs::path& folder) {
  Origin origin;
  for (const Listed& entry : read_list(folder)) origin.files.push_back(read_entry(folder, entry));
  return origin;
}

void update_origin(const fs::path& checkpoints, Origin given, Precedence precedence) {
  if (given.files.empty()) return;
  const fs::path folder = checkpoints / origin_name;
  const Origin stored = intact_files(folder);
  const Origin origin =
      precedence == Precedence::of_run ? merged(std::move(given), stored) : merged(stored, given);
  const std::vector<Listed> entries = list_of(origin);
  require_limits(folder, entries);
  prepare_folder(folder);
  std::string text = std::string(list_title) + '\n';
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const OriginFile& file = origin.files[i];
    text += fmt::format("{} {} {}\n", entries[i].checksum, entries[i].bytes, entries[i].name);
    const std::string* old = stored.find(file.name);
    if (old != nullptr && *old == file.bytes) continue;
    const fs::path path = folder / file.name;
    storage::create_folders_durably(path.parent_path());
    storage::write_durably(path, file.bytes);
  }
  if (load_file(folder / origin_list_name, max_list_bytes) == text) return;
  storage::write_durably(folder / origin_list_name, text);
  for (const OriginFile& file : stored.files)
    if (origin.find(file.name) == nullptr) remove_if_there(folder / file.name);
}

}  // namespace kzero::checkpoint

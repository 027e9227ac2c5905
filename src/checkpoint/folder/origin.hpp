// What a model brought with it: its config.json, generation_config.json, tokenizer and chat
// templates. They are in FOLDER/origin, in the folder of the checkpoints, so that a checkpoint
// needs none of the folders that its deck names. kzero copies these files without a change of
// meaning. A list of their sizes and checksums is written last and checked before use. A list
// without files marks a folder that kzero has begun to fill.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace kzero::checkpoint {

inline constexpr const char* origin_name = "origin";
inline constexpr const char* origin_list_name = "files.txt";

inline constexpr Index max_origin_file_bytes = Index{64} << 20;  // the largest tokenizers have 33
inline constexpr Index max_origin_bytes = Index{192} << 20;      // of all files
inline constexpr std::size_t max_origin_files = 64;

/// The folder that may hold further files; all others have plain names.
inline constexpr const char* templates_name = "additional_chat_templates";

struct OriginFile {
  std::string name;  // "tokenizer.json", or "additional_chat_templates/tool_use.jinja"
  std::string bytes;
  bool operator==(const OriginFile&) const = default;
};

struct Origin {
  std::vector<OriginFile> files{};  // sorted by name
  std::string note{};               // what was left out, for people

  /// The bytes of a file; null if there is none of this name.
  const std::string* find(std::string_view name) const;
  std::string* find(std::string_view name);
};

/// Returns whether the file describes the model. All other files describe its tokenizer.
bool is_of_model(std::string_view name);

/// The folder of the origin of a checkpoint: within the checkpoint's own folder, otherwise next to
/// it. Empty if neither has one with files.
std::filesystem::path origin_folder(const std::filesystem::path& checkpoint);

/// Reads the origin in such a folder. Throws Error(files) with the file at fault if a size, a
/// checksum or a name is not allowed or differs from the list.
Origin read_origin(const std::filesystem::path& folder);

/// Whose file remains where a folder of checkpoints and a run both have one.
enum class Precedence { of_run, of_folder };

/// Adds `origin` to the one of a folder of checkpoints. A file that only one of them has stays,
/// except that files of two models (two values of config.json) or of two tokenizers (of
/// tokenizer.json) are not mixed. Writes nothing if nothing changes. The list is replaced last; if
/// that is interrupted, the next call keeps all files that are as listed. Throws Error(files) if
/// the disk is full, a limit is exceeded, or the folder's `origin` is a link or is not kzero's. The
/// caller holds the folder's lock. Not collective.
void update_origin(const std::filesystem::path& checkpoints, Origin origin,
                   Precedence precedence = Precedence::of_run);

}  // namespace kzero::checkpoint

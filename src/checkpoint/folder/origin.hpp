// What a model brought with it: its config.json, generation_config.json, tokenizer and chat
// templates. They are in FOLDER/origin, in the folder of the checkpoints, so that a checkpoint
// needs none of the folders that its deck names. kzero copies these files without a change of
// meaning. A list of their sizes and checksums is written last and checked before use.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace kzero::checkpoint {

inline constexpr const char* origin_name = "origin";
inline constexpr const char* origin_list_name = "files.txt";

inline constexpr Index most_origin_file_bytes = Index{64} << 20;  // the largest tokenizers have 33
inline constexpr Index most_origin_bytes = Index{192} << 20;      // of all files
inline constexpr std::size_t most_origin_files = 64;

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

/// Returns whether the file describes the model. All others are those of its tokenizer.
bool is_of_model(std::string_view name);

/// The folder of the origin of a checkpoint: within the checkpoint's own folder, otherwise next to
/// it. Empty if neither has a complete one.
std::filesystem::path origin_folder(const std::filesystem::path& checkpoint);

/// Reads the origin in such a folder. Throws Error(files) with the file at fault if a size, a
/// checksum or a name is not allowed or not that of the list.
Origin read_origin(const std::filesystem::path& folder);

/// Makes `origin` the one of a folder of checkpoints. If it has no file that describes the model,
/// the present ones stay, and likewise those of the tokenizer. Writes nothing if nothing changes.
/// While files are replaced the origin is incomplete, which counts as none. Throws Error(files) if
/// the disk is full or a limit is exceeded. The caller holds the folder's lock. Not collective.
void update_origin(const std::filesystem::path& checkpoints, Origin origin);

}  // namespace kzero::checkpoint

// The files of a model's folder. Somebody else may have made the folder, so a link in it must not
// make kzero read, or copy into an export, a file from elsewhere.
#pragma once

#include <filesystem>
#include <string>

namespace kzero::convert {

/// Returns the path of `name` in a model's folder. All code that looks for a file in such a folder
/// uses this function. Throws Error(files) if the name is a link that leads out of the folder, with
/// one exception: links to files of models--NAME/blobs, as the snapshots of a Hugging Face cache
/// have them. The folder itself may be a link. The file need not exist.
std::filesystem::path model_file(const std::filesystem::path& folder, const std::string& name);

}  // namespace kzero::convert

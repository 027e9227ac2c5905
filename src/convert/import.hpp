// Makes a checkpoint of step 0 from Hugging Face weights.
#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/format/manifest.hpp"
#include "convert/export.hpp"
#include "convert/origin.hpp"
#include "grid/group.hpp"
#include "param/spec.hpp"

namespace kzero::convert {

/// Makes the checkpoint `folder`/step_00000000 from the weights at `path`, with the other state
/// arrays zero, and returns Weights::note(). `manifest` provides deck, model shape, precision and
/// state arrays. The folder also gets the model's origin. Collective over `group`.
std::string import_weights(const grid::Group& group, const std::filesystem::path& path,
                           const param::Table& table, const std::filesystem::path& folder,
                           checkpoint::Manifest manifest, const Origin& origin = {});

/// The same of the values of `source`, which has the parameters of the table. Each rank reads some
/// of them. Collective over `group`.
void import_weights(const grid::Group& group, const ExportSource& source, const param::Table& table,
                    const std::filesystem::path& folder, checkpoint::Manifest manifest,
                    const Origin& origin = {});

}  // namespace kzero::convert

// Makes checkpoints of step 0 from weights alone.
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

/// Makes the checkpoint `folder`/step_00000000 of the source's values without any other state
/// array; a training that begins with it starts its optimizer afresh. A few MiB of memory suffice
/// for weights of any size. `manifest` provides deck, model shape, adapters, precision and
/// optimizer. Reads each value twice. Collective over `group`.
void write_weights(const grid::Group& group, const ExportSource& source,
                   const std::filesystem::path& folder, checkpoint::Manifest manifest,
                   const Origin& origin = {});

}  // namespace kzero::convert

// Exports of a checkpoint that holds adapters: PEFT's folder, or the model with the adapters merged
// into its weights.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "convert/export.hpp"
#include "convert/weights.hpp"

namespace kzero::convert {

/// Writes the source's adapters as adapter_model.safetensors, rounded to the type of `options`, and
/// adapter_config.json, which names `base` as the base model. `found` is their checkpoint. A
/// missing folder is created. Returns the names of the files. Throws Error(files) if files that
/// kzero did not write are in the way. Not collective.
std::vector<std::string> export_adapter(const checkpoint::Found& found, const ExportSource& source,
                                        const std::filesystem::path& folder,
                                        const std::string& base, const ExportOptions& options);

/// The weights W + (alpha / rank) B A of the model, computed in fp32, with the adapters of
/// `source`, whose checkpoint is `found`, and the weights W of `base`, which has the parameters of
/// `table`. Its finish() throws Error(files) unless W are the values on which the adapters were
/// trained; `path` names them in messages. Each element must be read once. The arguments must
/// outlive the result.
ExportSource merged_weights(const checkpoint::Found& found, const ExportSource& source,
                            const Weights& base, const std::string& path,
                            const param::Table& table);

}  // namespace kzero::convert

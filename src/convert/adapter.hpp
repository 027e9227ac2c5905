// Adapter folders of PEFT (https://github.com/huggingface/peft): adapter_config.json, and
// adapter_model.safetensors with lora_A [r,in] and lora_B [out,r] of every adapter.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "checkpoint/format/state_shard.hpp"
#include "convert/names.hpp"
#include "convert/safetensors.hpp"
#include "deck/config.hpp"
#include "param/spec.hpp"

namespace kzero::convert {

inline constexpr const char* adapter_config_name = "adapter_config.json";
inline constexpr const char* adapter_weights_name = "adapter_model.safetensors";

/// The entry of the metadata of kzero's adapter files with the hash of the weights on which they
/// were trained.
inline constexpr const char* base_hash_key = "kzero_base_hash";

/// The name that PEFT gives a parameter of an adapter.
std::string peft_name(deck::ModelFamily family, const std::string& parameter);

/// The adapters in a folder, read range by range. The constructor reads only adapter_config.json
/// and the header of the weights.
class AdapterWeights {
 public:
  /// Throws Error(files) with every setting that differs from `lora` or that kzero does not
  /// compute, and every tensor that is missing, unknown or of another shape than in `table`, which
  /// has the adapters' units. Not collective.
  AdapterWeights(const std::filesystem::path& folder, const deck::Lora& lora,
                 deck::ModelFamily family, const param::Table& table);

  /// The hash of the weights on which they were trained, as text; empty if another program wrote
  /// them.
  std::string base_hash() const;

  /// Reads elements of a parameter of the table as float32. Throws Error(files) for values that are
  /// not finite, and if the file has changed. Not collective.
  void load_range(const std::string& parameter, checkpoint::Range range,
                  std::span<float> values) const;

 private:
  deck::ModelFamily family_;
  SafetensorsFile file_;
};

}  // namespace kzero::convert

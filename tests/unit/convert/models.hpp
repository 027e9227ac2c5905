// The reference models' weights, to be changed and rewritten, and checkpoints of them.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/format/manifest.hpp"
#include "checkpoint/format/parameter_hash.hpp"
#include "convert/export.hpp"
#include "convert/import.hpp"
#include "convert/safetensors_writer.hpp"
#include "convert/weights.hpp"
#include "deck/writer.hpp"
#include "model/transformer_definition.hpp"
#include "unit/convert/support.hpp"

namespace kzero::convert {

inline fs::path reference(const std::string& name) {
  return fs::path(KZERO_TEST_DATA) / "reference" / (name + ".safetensors");
}

inline std::vector<float> values_of(const SafetensorsFile& file, const std::string& name) {
  const Tensor* tensor = file.find(name);
  std::vector<float> values(tensor == nullptr ? 0 : tensor->elements());
  if (tensor != nullptr) file.read(*tensor, {0, tensor->elements()}, values);
  return values;
}

/// Changes to a copy of the reference file's tensors, made before they are rewritten.
struct Tensors {
  SafetensorsWriter::Shapes shapes;
  std::vector<std::vector<float>> values;

  Tensors() = default;
  explicit Tensors(const fs::path& path) {
    const SafetensorsFile file(path);
    for (const Tensor& tensor : file.tensors()) {
      add(tensor.name, tensor.shape, values_of(file, tensor.name));
    }
  }
  void add(const std::string& name, const std::vector<Index>& shape, std::vector<float> data) {
    shapes.emplace_back(name, shape);
    values.push_back(std::move(data));
  }
  std::size_t at(const std::string& name) const {
    std::size_t i = 0;
    while (shapes.at(i).first != name) ++i;
    return i;
  }
  void write(const fs::path& path) const {
    // The header lists tensors by name, so the data may be in any order.
    SafetensorsWriter writer(path, shapes);
    for (const auto& data : values) writer.append(data);
    writer.finish();
  }
};

/// As engine::saved_parameters.
inline std::vector<checkpoint::Parameter> saved_parameters(const checkpoint::Manifest& manifest) {
  const deck::Lora lora = manifest.adapters ? manifest.adapters->lora : deck::Lora();
  return checkpoint::parameters_of(
      param::trained_of(model::parameter_table(manifest.model, {}, lora)));
}

inline checkpoint::Manifest manifest_for(const deck::Model& model) {
  checkpoint::Manifest manifest;
  deck::Config config;
  config.model = model;
  config.data.format = deck::DataFormat::llmc;  // has no requirement on the vocabulary
  manifest.deck = deck::resolved(config);
  manifest.precision = "fp32";
  manifest.state_arrays = {{"master"}, {"first_moment"}, {"second_moment"}};
  manifest.model = model;
  return manifest;
}

inline Weights weights_of(const fs::path& path, const deck::Model& model) {
  return {path, model, model::parameter_table(model)};
}

/// The hash of the weights of a model, as a run that freezes them records it.
inline std::uint64_t hash_of_weights(const Weights& weights, const param::Table& table) {
  std::uint64_t hash = 0;
  Index number = 0;
  for (const checkpoint::Parameter& p : checkpoint::parameters_of(table)) {
    std::vector<float> values(static_cast<std::size_t>(p.elements()));
    weights.load_range(p.name, {0, p.elements()}, values);
    hash += checkpoint::hash_of({p.name, {{0, p.elements()}}, {{"master", values}}}, number++);
  }
  return hash;
}

/// Returns the checkpoint that an import of these weights creates in `folder`.
inline checkpoint::Found checkpoint_of(const grid::Group& self, const fs::path& path,
                                       const deck::Model& model, const fs::path& folder) {
  import_weights(self, path, model::parameter_table(model), folder, manifest_for(model));
  std::vector<std::string> problems;
  return checkpoint::open(self, folder, saved_parameters, problems);
}

/// Returns the checkpoint that an import of the reference model "even" creates in `folder`.
inline checkpoint::Found even_checkpoint(const grid::Group& self, const fs::path& folder) {
  return checkpoint_of(self, reference("even"), even_model(), folder);
}

}  // namespace kzero::convert

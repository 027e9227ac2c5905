#include "convert/gpt2.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "checkpoint/files.hpp"
#include "checkpoint/reader.hpp"
#include "checkpoint/writer.hpp"
#include "grid/agreement.hpp"

namespace kzero::convert {

namespace {

using checkpoint::Parameter;
using checkpoint::Piece;
using checkpoint::Range;

constexpr std::string_view prefix = "transformer.";
constexpr const char* head = "lm_head.weight";
constexpr const char* embedding = "wte.weight";
constexpr Index chunk_elements = Index{1} << 20;
constexpr std::size_t most_problems = 20;

std::string plain(const std::string& name) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

/// Constants that some programs store beside the weights.
bool is_mask(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

bool same_values(const SafetensorsFile& file, const Tensor& a, const Tensor& b) {
  if (a.shape != b.shape) return false;
  std::vector<float> x;
  std::vector<float> y;
  for (Index at = 0; at < a.elements(); at += chunk_elements) {
    const Range range{at, std::min(chunk_elements, a.elements() - at)};
    x.resize(range.count);
    y.resize(range.count);
    file.read(a, range, x);
    file.read(b, range, y);
    if (x != y) return false;
  }
  return true;
}

/// Says what is wrong with one tensor for one parameter; empty if it fits.
std::string misfit(const Parameter& parameter, const Tensor* tensor) {
  const std::string wanted =
      fmt::format("{} [{}]", parameter.name, fmt::join(parameter.shape, ", "));
  if (tensor == nullptr) {
    return wanted + " is missing" +
           (parameter.name == head ? " (the file's embeddings are tied: model.tied_embeddings)"
                                   : "");
  }
  if (tensor->shape != parameter.shape) {
    return fmt::format("{} has shape [{}] in the file", wanted, fmt::join(tensor->shape, ", "));
  }
  if (tensor->dtype != "F32" && tensor->dtype != "F16" && tensor->dtype != "BF16") {
    return fmt::format("{} is of dtype {}; weights have to be F32, F16 or BF16", wanted,
                       tensor->dtype);
  }
  return "";
}

nlohmann::ordered_json config_of(const checkpoint::Manifest& manifest) {
  const auto& model = manifest.model;
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"activation_function", "gelu_new"},
          {"n_layer", model.layers},
          {"n_embd", model.hidden},
          {"n_head", model.heads},
          {"n_positions", model.sequence},
          {"n_ctx", model.sequence},
          {"n_inner", model.feed_forward},
          {"vocab_size", model.vocab},
          {"layer_norm_epsilon", model.layernorm_eps},
          {"tie_word_embeddings", model.tied_embeddings != 0},
          {"attn_pdrop", 0.0},
          {"embd_pdrop", 0.0},
          {"resid_pdrop", 0.0},
          {"torch_dtype", "float32"}};
}

}  // namespace

Gpt2Weights::Gpt2Weights(const std::filesystem::path& path, const param::Table& table)
    : file_(path) {
  std::vector<std::string> problems;
  std::map<std::string, const Tensor*> offered;
  for (const Tensor& tensor : file_.tensors()) {
    const std::string name = plain(tensor.name);
    if (is_mask(name)) continue;
    if (!offered.emplace(name, &tensor).second) problems.push_back(name + " is there twice");
  }
  for (const Parameter& parameter : checkpoint::parameters_of(table)) {
    const auto found = offered.find(parameter.name);
    const Tensor* tensor = found == offered.end() ? nullptr : found->second;
    const std::string problem = misfit(parameter, tensor);
    if (!problem.empty()) problems.push_back(problem);
    tensors_[parameter.name] = tensor;
  }
  for (const auto& [name, tensor] : offered) {
    if (tensors_.contains(name)) continue;
    if (name != head || !problems.empty()) {
      problems.push_back(name + " is not a parameter of this model");
    } else if (!same_values(file_, *tensor, *tensors_.at(embedding))) {
      problems.push_back(
          fmt::format("{} differs from {} (model.tied_embeddings is for files "
                      "where they are the same)",
                      head, embedding));
    }
  }
  const std::size_t hidden = problems.size() - std::min(problems.size(), most_problems);
  problems.resize(problems.size() - hidden);
  if (hidden > 0) problems.push_back(fmt::format("and {} more", hidden));
  KZERO_REQUIRE(problems.empty(), ExitCode::files, "{}: does not fit the model:\n  {}",
                path.string(), fmt::join(problems, "\n  "));
}

void Gpt2Weights::load_range(const std::string& parameter, Range range,
                             std::span<float> values) const {
  file_.read(*tensors_.at(parameter), range, values);
}

void export_gpt2(const checkpoint::Found& found, const std::filesystem::path& file) {
  const auto& parameters = found.manifest.parameters;
  const bool untied = std::ranges::find(parameters, head, &Parameter::name) != parameters.end();
  SafetensorsWriter::Shapes shapes;
  for (const Parameter& parameter : parameters) {
    const bool prefixed = untied && parameter.name != head;
    shapes.emplace_back((prefixed ? std::string(prefix) : "") + parameter.name, parameter.shape);
  }
  SafetensorsWriter writer(file, shapes);
  std::vector<float> chunk;
  for (const Parameter& parameter : parameters) {
    for (Index at = 0; at < parameter.elements(); at += chunk_elements) {
      const Range range{at, std::min(chunk_elements, parameter.elements() - at)};
      chunk.resize(range.count);
      const Piece piece{parameter.name, {range}, chunk, {}, {}};
      checkpoint::read(found, std::span(&piece, 1));
      writer.append(chunk);
    }
  }
  writer.finish();
  checkpoint::write_durably(file.parent_path() / "config.json",
                            config_of(found.manifest).dump(2) + "\n");
}

void import_gpt2(const grid::Group& group, const std::filesystem::path& file,
                 const param::Table& table, const std::filesystem::path& folder,
                 checkpoint::Manifest manifest) {
  manifest.parameters = checkpoint::parameters_of(table);
  std::vector<std::vector<float>> memory;
  std::vector<float> zeros;
  std::vector<Piece> pieces;
  grid::together(group, [&] {
    const Gpt2Weights weights(file, table);
    for (std::size_t p = group.rank(); p < manifest.parameters.size(); p += group.size()) {
      const Parameter& parameter = manifest.parameters[p];
      const Range all{0, parameter.elements()};
      auto& values = memory.emplace_back(all.count);
      weights.load_range(parameter.name, all, values);
      zeros.resize(std::max(zeros.size(), values.size()));
      pieces.push_back({parameter.name, {all}, values, {}, {}});
    }
  });
  for (Piece& piece : pieces) {
    piece.first_moment = piece.second_moment = std::span(zeros).first(piece.master.size());
  }
  checkpoint::write(group, folder, manifest, pieces, 0);
}

}  // namespace kzero::convert

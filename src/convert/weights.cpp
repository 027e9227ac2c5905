#include "convert/weights.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "convert/architecture.hpp"
#include "convert/finite.hpp"
#include "convert/safetensors.hpp"
#include "convert/weight_files.hpp"

namespace kzero::convert {

namespace {

/// Returns the mean of the rows of a tensor [rows, width], summed in fp64 in the order of the rows:
/// a function of the file alone. Throws Error(files) for values that are not finite. Reads the
/// tensor in parts of a few MiB.
std::vector<float> mean_row(const SafetensorsFile& file, const Tensor& tensor) {
  constexpr Index part_elements = Index{1} << 20;
  const Index rows = tensor.shape.front(), width = tensor.shape.back();
  const Index rows_of_part = std::max<Index>(1, part_elements / width);
  std::vector<double> sums(static_cast<std::size_t>(width));
  std::vector<float> part;
  for (Index row = 0; row < rows; row += rows_of_part) {
    const checkpoint::Range range{row * width, std::min(rows_of_part, rows - row) * width};
    part.resize(range.count);
    file.read(tensor, range, part);
    require_finite(file.path().string(), {tensor.name, tensor.shape}, range, part);
    for (std::size_t i = 0; i < part.size(); ++i) sums[i % sums.size()] += part[i];
  }
  std::vector<float> mean;
  mean.reserve(sums.size());
  for (const double sum : sums) mean.push_back(static_cast<float>(sum / static_cast<double>(rows)));
  return mean;
}

using checkpoint::Parameter;
using checkpoint::Range;

constexpr Index chunk_elements = Index{1} << 20;
constexpr std::size_t max_problems = 20;

/// Describes a mismatch between one tensor and one parameter; empty if it fits.
std::string misfit(const Parameter& parameter, const Tensor* tensor) {
  const std::string wanted =
      fmt::format("{} [{}]", parameter.name, fmt::join(parameter.shape, ", "));
  if (tensor == nullptr) {
    return wanted + " is missing" +
           (parameter.name == head_name ? " (the file's embeddings are tied: model.tied_embeddings)"
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

/// Describes a tensor that does not hold the constant; empty if it does.
std::string wrong_constant(const SafetensorsFile& file, const Tensor& tensor, float constant) {
  std::vector<float> values(1);
  if (tensor.elements() != 1)
    return fmt::format("{} has shape [{}]; it must be one number", printable(tensor.name),
                       fmt::join(tensor.shape, ", "));
  file.read(tensor, {0, 1}, values);
  if (is_stored_as(constant, values.front())) return "";
  return fmt::format("{} is {}; kzero computes with {}", printable(tensor.name), values.front(),
                     constant);
}

void throw_if_any(const std::filesystem::path& path, std::vector<std::string> problems) {
  const std::size_t hidden = problems.size() - std::min(problems.size(), max_problems);
  problems.resize(problems.size() - hidden);
  if (hidden > 0) problems.push_back(fmt::format("and {} more", hidden));
  KZERO_REQUIRE(problems.empty(), ExitCode::files, "{}: does not fit the model:\n  {}",
                printable(path.string()), fmt::join(problems, "\n  "));
}

/// The vocab_size of a config.json.
Index vocab_in(const std::filesystem::path& config) {
  for (const deck::ImpliedValue& implied : read_architecture(config.string()))
    if (implied.path == "model.vocab") return std::get<Index>(implied.value);
  return 0;
}

}  // namespace

Weights::Weights(const std::filesystem::path& path, const deck::Model& model,
                 const param::Table& table)
    : names_(&names_of(model.family)) {
  const WeightFiles found = find_weight_files(path);
  for (const auto& file : found.files) files_.emplace_back(file);
  if (found.config) {
    require_same_function(*found.config, model);
    described_rows_ = vocab_in(*found.config);
  } else {
    note_ = fmt::format("no {} was found for {}: {} are the deck's, unchecked", config_name,
                        printable(path.string()), names_->unchecked);
  }
  std::vector<std::string> problems = offer(found.placed);
  const std::vector<std::string> more = match(table);
  problems.insert(problems.end(), more.begin(), more.end());
  throw_if_any(path, problems);
  if (other_parts_ > 0)
    note_ += fmt::format("{}{}: {} tensors that are not for text were left out (those of images)",
                         note_.empty() ? "" : "; ", printable(path.string()), other_parts_);
  if (new_rows_ == 0) return;
  note_ += fmt::format(
      "{}{} has {} tokens and model.vocab is {}: new rows start as the mean of the "
      "others",
      note_.empty() ? "" : "; ", printable(path.string()), model.vocab - new_rows_, model.vocab);
}

std::vector<std::string> Weights::offer(
    const std::map<std::string, std::filesystem::path>& placed) {
  std::vector<std::string> problems;
  for (const SafetensorsFile& file : files_) {
    for (const Tensor& tensor : file.tensors()) {
      const std::string name = names_->plain(tensor.name);
      if (names_->is_constant(name)) continue;
      if (names_->is_other_part(name)) {
        ++other_parts_;
        continue;
      }
      if (const StoredConstant* constant = names_->constant(name)) {
        const std::string problem = wrong_constant(file, tensor, constant->value);
        if (!problem.empty()) problems.push_back(problem);
        continue;
      }
      if (!offered_.emplace(name, Stored{&file, &tensor}).second)
        problems.push_back(printable(name) + " is there twice");
    }
  }
  for (const auto& [name, path] : placed) {
    const auto file = std::ranges::find(files_, path, &SafetensorsFile::path);
    if (file->find(name) == nullptr) {
      problems.push_back(fmt::format("{} is not in {}, where the index places it", printable(name),
                                     printable(path.filename().string())));
    }
  }
  return problems;
}

std::vector<std::string> Weights::match(const param::Table& table) {
  std::vector<std::string> problems;
  for (const auto& [name, stored] : offered_) {
    if (name.ends_with(".experts.gate_up_proj"))
      return {printable(name) +
              " joins the experts of a layer, as transformers 5 has them in memory; save the model "
              "with save_pretrained, which writes each by itself unless save_original_format is "
              "False"};
  }
  std::set<std::string> known;
  for (Parameter parameter : checkpoint::parameters_of(table)) {
    const auto found = offered_.find(*known.insert(names_->plain(parameter.name)).first);
    const Tensor* tensor = found == offered_.end() ? nullptr : found->second.tensor;
    if (tensor != nullptr && lacks_rows(parameter, *tensor)) {
      new_rows_ = parameter.shape.front() - tensor->shape.front();
      parameter.shape.front() = tensor->shape.front();
    }
    const std::string problem = misfit(parameter, tensor);
    if (!problem.empty()) problems.push_back(problem);
  }
  for (const auto& [name, stored] : offered_) {
    if (known.contains(name)) continue;
    if (name != head_name || !problems.empty()) {
      problems.push_back(printable(name) + " is not a parameter of this model");
    } else if (!same_values(stored, offered_.at(std::string(names_->embedding)))) {
      problems.push_back(
          fmt::format("{} differs from {} (model.tied_embeddings is for files "
                      "where they are the same)",
                      head_name, names_->embedding));
    }
  }
  return problems;
}

/// Returns whether the parameter has a row for each token, and the tensor fewer, for tokens that a
/// tokenizer got later.
bool Weights::lacks_rows(const Parameter& parameter, const Tensor& tensor) const {
  const std::string name = names_->plain(parameter.name);
  if (name != names_->embedding && name != head_name) return false;
  if (tensor.shape.size() != 2 || tensor.shape.front() < 1) return false;
  const Index rows = tensor.shape.front();
  return rows < parameter.shape.front() && (described_rows_ == 0 || rows == described_rows_);
}

bool Weights::same_values(const Stored& a, const Stored& b) {
  if (a.tensor->shape != b.tensor->shape) return false;
  std::vector<float> x;
  std::vector<float> y;
  for (Index at = 0; at < a.tensor->elements(); at += chunk_elements) {
    const Range range{at, std::min(chunk_elements, a.tensor->elements() - at)};
    x.resize(range.count);
    y.resize(range.count);
    a.file->read(*a.tensor, range, x);
    b.file->read(*b.tensor, range, y);
    if (x != y) return false;
  }
  return true;
}

void Weights::load_range(const std::string& parameter, Range range, std::span<float> values) const {
  const std::string name = names_->plain(parameter);
  const Stored& stored = offered_.at(name);
  const Index left = stored.tensor->elements() - range.begin;
  const Range known{range.begin, std::clamp<Index>(left, 0, range.count)};
  const auto read = values.first(static_cast<std::size_t>(known.count));
  if (known.count > 0) stored.file->read(*stored.tensor, known, read);
  require_finite(stored.file->path().string(), {stored.tensor->name, stored.tensor->shape}, known,
                 read);
  if (known.count == range.count) return;
  std::vector<float>& mean = means_[name];
  if (mean.empty()) mean = mean_row(*stored.file, *stored.tensor);
  for (auto at = static_cast<std::size_t>(known.count); at < values.size(); ++at)
    values[at] = mean[(static_cast<std::size_t>(range.begin) + at) % mean.size()];
}

}  // namespace kzero::convert

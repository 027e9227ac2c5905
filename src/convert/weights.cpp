#include "convert/weights.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "convert/architecture.hpp"
#include "convert/finite.hpp"
#include "convert/weight_files.hpp"

namespace kzero::convert {

namespace {

using checkpoint::Parameter;
using checkpoint::Range;

constexpr Index chunk_elements = Index{1} << 20;
constexpr std::size_t most_problems = 20;

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

void throw_if_any(const std::filesystem::path& path, std::vector<std::string> problems) {
  const std::size_t hidden = problems.size() - std::min(problems.size(), most_problems);
  problems.resize(problems.size() - hidden);
  if (hidden > 0) problems.push_back(fmt::format("and {} more", hidden));
  KZERO_REQUIRE(problems.empty(), ExitCode::files, "{}: does not fit the model:\n  {}",
                printable(path.string()), fmt::join(problems, "\n  "));
}

}  // namespace

Weights::Weights(const std::filesystem::path& path, const deck::Model& model,
                 const param::Table& table)
    : names_(&names_of(model.family)) {
  const WeightFiles found = find_weight_files(path);
  for (const auto& file : found.files) files_.emplace_back(file);
  if (found.config) {
    require_same_function(*found.config, model);
  } else {
    note_ = fmt::format("no {} was found for {}: {} are the deck's, unchecked", config_name,
                        printable(path.string()), names_->unchecked);
  }
  std::vector<std::string> problems = offer(found.placed);
  const std::vector<std::string> more = match(table);
  problems.insert(problems.end(), more.begin(), more.end());
  throw_if_any(path, problems);
}

std::vector<std::string> Weights::offer(
    const std::map<std::string, std::filesystem::path>& placed) {
  std::vector<std::string> problems;
  for (const SafetensorsFile& file : files_) {
    for (const Tensor& tensor : file.tensors()) {
      const std::string name = names_->plain(tensor.name);
      if (names_->is_constant(name)) continue;
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
  std::set<std::string> known;
  for (const Parameter& parameter : checkpoint::parameters_of(table)) {
    const auto found = offered_.find(*known.insert(names_->plain(parameter.name)).first);
    const Tensor* tensor = found == offered_.end() ? nullptr : found->second.tensor;
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
  const Stored& stored = offered_.at(names_->plain(parameter));
  stored.file->read(*stored.tensor, range, values);
  require_finite(stored.file->path().string(), {stored.tensor->name, stored.tensor->shape}, range,
                 values);
}

}  // namespace kzero::convert

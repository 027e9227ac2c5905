// The model with its own arenas, parameters and gradients, driven directly without an engine or
// ranks.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "data/sampler.hpp"
#include "engine/batches.hpp"
#include "kernels/initialize.hpp"
#include "model/transformer.hpp"
#include "model/transformer_definition.hpp"
#include "param/flat_layout.hpp"
#include "support/device_memory.hpp"
#include "support/numbers.hpp"
#include "zero/flat_buffer.hpp"

namespace kzero::tests {

template <class T>
class DrivenModel {
 public:
  /// Batches may have documents if `has_documents`.
  DrivenModel(const deck::Model& model, Index batch, const deck::Recompute& recompute = {},
              model::Passes passes = model::Passes::all, bool has_documents = false,
              const deck::Train& train = {})
      : table(model::parameter_table(model)),
        layout_(table, 1),
        gemm_(tensor::make_gemm(deck::GemmBackend::automatic)),
        measured_(measure(model, shape_of(batch, passes, has_documents), recompute, train)),
        arenas_(measured_, ledger_),
        parts_(arenas_, model, shape_of(batch, passes, has_documents), recompute, layout_,
               gemm_.get(), train),
        read_only_(parts_.parameters.units().begin(), parts_.parameters.units().end()) {
    // Padding is 0, as in a run.
    kernels::fill<T>({}, {parts_.parameters.data(), static_cast<std::size_t>(layout_.total())}, 0);
  }

  template <class Values>
  void set(const std::string& name, const Values& values) {
    const tensor::Vector<T> to = find(parts_.parameters, name);
    ASSERT_EQ(values.size(), to.size()) << name;
    std::vector<T> rounded;
    for (const auto value : values) rounded.push_back(static_cast<T>(static_cast<float>(value)));
    to_device(rounded, to.data());
  }

  /// Gives each parameter numbers of its own, around 1 where it begins as 1.
  void set_numbers() {
    std::uint64_t seed = 10;
    for (const auto& unit : table) {
      for (const auto& p : unit.params) {
        auto values = numbers<float>(p.elements(), ++seed, 0.5);
        if (p.init == param::Init::ones)
          for (auto& value : values) value += 1;
        set(p.name, values);
      }
    }
  }

  /// The gradients before the first micro-batch must not affect the result.
  void spoil_gradients() {
    kernels::fill<T>({}, {parts_.gradients.data(), static_cast<std::size_t>(layout_.total())},
                     1e4F);
  }

  /// Returns the sum of losses of samples [first, first + batch), with their dropout. Computes the
  /// gradient of scale times that sum and the z-loss.
  double loss_and_gradients(const data::BatchSource& samples, Index first, float scale,
                            tensor::Accumulate accumulate) {
    model::Transformer<T>& model = parts_.model;
    const model::Units<const T> parameters(read_only_);
    const model::Units<T> gradients(parts_.gradients.units());
    model::Batch batch = load(samples, first);
    batch.training_sample = first;
    for (Index unit = 0; unit < model.head(); ++unit) model.forward(unit, parameters, batch);
    model.loss_and_gradient(parameters, batch, scale, accumulate, gradients, parts_.loss);
    for (Index unit = model.head() - 1; unit >= 0; --unit)
      model.backward(unit, parameters, batch, accumulate, gradients);
    model.exec().fence("kzero::tests::gradients_ready");
    return from_device(parts_.loss, 1)[0];
  }

  double loss(const data::BatchSource& samples, Index first) {
    model::Transformer<T>& model = parts_.model;
    const model::Units<const T> parameters(read_only_);
    const model::Batch batch = load(samples, first);
    for (Index unit = 0; unit < model.head(); ++unit) model.forward(unit, parameters, batch);
    model.loss(parameters, batch, parts_.loss);
    return from_device(parts_.loss, 1)[0];
  }

  /// Returns the loss of each target of samples [first, first + batch).
  std::vector<float> token_losses(const data::BatchSource& samples, Index first) {
    model::Transformer<T>& model = parts_.model;
    const model::Units<const T> parameters(read_only_);
    const model::Batch batch = load(samples, first);
    for (Index unit = 0; unit < model.head(); ++unit) model.forward(unit, parameters, batch);
    std::vector<float> losses(batch.targets.size());
    model.token_losses(parameters, batch, losses);
    return losses;
  }

  /// Returns the bytes allocated in a category.
  Index bytes(memory::Category category) const { return measured_.bytes()[position(category)]; }

  std::vector<double> gradient(const std::string& name) const {
    std::vector<double> values;
    for (const T value : from_device(find(parts_.gradients, name)))
      values.push_back(as_double(value));
    return values;
  }

  const model::Transformer<T>& model() const { return parts_.model; }
  model::Units<const T> parameters() const { return read_only_; }

  const param::Table table;
  kernels::Documents documents{};  // of all samples, from sample 0 on

 private:
  static model::BatchShape shape_of(Index batch, model::Passes passes, bool has_documents) {
    return {.batch = batch, .threads = 1, .passes = passes, .documents = has_documents};
  }

  model::Batch load(const data::BatchSource& samples, Index first) {
    model::Batch batch = parts_.batches.load(parts_.model.exec(), samples, first);
    if (documents.empty()) return batch;
    const std::size_t rows = batch.inputs.size();
    const Index begin = first * parts_.sequence;
    batch.documents = {{documents.begin.data() + begin, rows},
                       {documents.end.data() + begin, rows}};
    return batch;
  }

  struct Parts {
    zero::FlatBuffer<T> parameters, gradients;
    model::Transformer<T> model;
    engine::Batches batches;
    Index sequence;
    double* loss;

    Parts(memory::Arenas& arenas, const deck::Model& m, const model::BatchShape& shape,
          const deck::Recompute& recompute, const param::FlatLayout& layout, tensor::Gemm* gemm,
          const deck::Train& train)
        : parameters(arenas, memory::Category::parameters, layout, zero::Placement::replicated),
          gradients(arenas, memory::Category::gradients, layout, zero::Placement::replicated),
          model(arenas, m, recompute, {shape, gemm}, train),
          batches(arenas, {.batch = shape.batch, .sequence = m.sequence, .vocab = m.vocab}),
          sequence(m.sequence),
          loss(arenas.take<double>(memory::Category::io, 1)) {}
  };

  memory::Arenas measure(const deck::Model& model, const model::BatchShape& shape,
                         const deck::Recompute& recompute, const deck::Train& train) const {
    memory::Arenas arenas;
    Parts(arenas, model, shape, recompute, layout_, nullptr, train);
    return arenas;
  }

  tensor::Vector<T> find(const zero::FlatBuffer<T>& buffer, const std::string& name) const {
    for (std::size_t unit = 0; unit < table.size(); ++unit) {
      for (std::size_t i = 0; i < table[unit].params.size(); ++i) {
        const param::ParamSpec& p = table[unit].params[i];
        if (p.name != name) continue;
        return {buffer.unit(static_cast<Index>(unit)) + layout_.units()[unit].offsets[i],
                static_cast<std::size_t>(p.elements())};
      }
    }
    throw std::runtime_error("no parameter " + name);
  }

  param::FlatLayout layout_;
  std::unique_ptr<tensor::Gemm> gemm_;
  memory::Ledger ledger_;
  memory::Arenas measured_, arenas_;
  Parts parts_;
  std::vector<const T*> read_only_;
};

}  // namespace kzero::tests

#include "engine/preference_pass.hpp"

#include "data/batch_source.hpp"

namespace kzero::engine {

namespace {

template <class U>
tensor::Vector<U> take_workspace(memory::Arenas& arenas, Index count) {
  return {arenas.take<U>(memory::Category::workspace, count), static_cast<std::size_t>(count)};
}

}  // namespace

template <class T>
PreferencePass<T>::PreferencePass(memory::Arenas& arenas, const deck::Preference& preference,
                                  Index rows)
    : terms_{preference.loss, preference.beta, preference.smooth, preference.gamma, preference.nll},
      weights_(take_workspace<float>(arenas, rows)),
      each_(take_workspace<kernels::PairSums>(arenas, rows / data::min_pair_tokens)) {}

template <class T>
void PreferencePass<T>::loss_and_gradient(model::Model<T>& model, model::Units<const T> parameters,
                                          const model::Batch& batch, float scale,
                                          tensor::Accumulate accumulate, model::Units<T> gradients,
                                          double* sums) const {
  const tensor::Execution& exec = model.exec();
  const tensor::Vector<kernels::PairSums> each(each_.data(), batch.pairs.extent(0));
  kernels::preference_weights(exec, terms_, model.row_losses(parameters, batch), batch.pairs, each,
                              weights_);
  model::Batch weighted = batch;
  weighted.weights = weights_;
  model.loss_and_gradient(parameters, weighted, scale, accumulate, gradients, sums);
  kernels::sum_pairs(exec, each, sums, sums + 1);  // instead of the sum of the rows' losses
}

template <class T>
PreferenceResult PreferencePass<T>::result(std::span<const double> of_step, Index pairs) {
  const auto count = static_cast<double>(pairs);
  return {pairs, of_step[0] / count, of_step[1] / count, of_step[2] / count};
}

#define KZERO_INSTANTIATE(T) template class PreferencePass<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::engine

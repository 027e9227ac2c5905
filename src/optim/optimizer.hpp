// What an optimizer is to training: the state arrays that it declares, and the update of a shard.
// An optimizer acts on the ranges it is given and does not know how they came to be this rank's.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <variant>

#include "deck/config.hpp"
#include "param/flat_layout.hpp"
#include "param/reduced_array.hpp"
#include "param/state_array.hpp"
#include "tensor/view.hpp"

namespace kzero::optim {

/// The addresses of the state of elements [0, n) of a unit, or of a rank's shard of it: one pointer
/// for each declared array, in the order of the declaration. An array that extends to some
/// parameters alone has no address (null) at an element that it lacks, and one that is good up to
/// the end of the element's parameter elsewhere.
class State {
 public:
  State() = default;
  State(std::initializer_list<float*> arrays) {
    for (float* array : arrays) add(array);
  }

  /// Appends the next array; no more than param::most_state_arrays.
  void add(float* array) { arrays_[count_++] = {array, nullptr}; }

  /// Appends an array that has the places of `range`, which must outlive the object.
  void add(float* array, const param::CompactRange& range) { arrays_[count_++] = {array, &range}; }

  std::size_t size() const { return count_; }
  float* operator[](std::size_t array) const {
    const auto& [data, range] = arrays_[array];
    if (range == nullptr) return data + at_;
    const Index place = range->position(at_);
    return place < 0 ? nullptr : data + place;
  }
  float* master() const { return (*this)[0]; }

  /// The state from element n on.
  State operator+(Index n) const {
    State later = *this;
    later.at_ += n;
    return later;
  }

 private:
  struct Array {
    float* data;
    const param::CompactRange* range;  // null: an element after another
  };
  std::array<Array, param::most_state_arrays> arrays_{};
  std::size_t count_ = 0;
  Index at_ = 0;
};

/// One unit's share of an update: elements [begin, end) of the unit.
template <class T>
struct Share {
  const param::UnitSpec* spec = nullptr;
  const param::UnitLayout* layout = nullptr;
  Index begin = 0, end = 0;     // of the unit
  const T* gradient = nullptr;  // at begin
  T* parameters = nullptr;      // at begin; in fp32 they may be the master weights themselves
  State state;                  // at begin
  // Of optimizers with several passes, in host memory: the words of the sums of the unit's
  // parameters, each Optimizer::sum_words() of them, one parameter's after another's.
  const std::uint64_t* sums = nullptr;  // over all ranks, of the pass before
  std::uint64_t* adds = nullptr;        // of this pass; null if another rank adds these elements up
  const float* reduced = nullptr;       // in host memory: the unit's reduced arrays, likewise
  Index tensor_rank = 0;  // adds only what it owns of parameters that several tensor ranks hold
  T* prepared = nullptr;  // at begin, of MatrixRule::prepare(); may be where the gradient is
};

/// A share in the run's precision.
using AnyShare = std::variant<Share<float>, Share<bf16>, Share<fp16>>;

/// Where a share's memory is, and who computes: a device, where work is enqueued, or the host's
/// cores, where it is done on return.
using Place = std::variant<tensor::Execution, tensor::HostCores>;

/// The factor on gradients in a step: unscaling by the loss scale, and clipping.
double gradient_scale(double norm, double clip, double loss_scale);

/// One step of the optimizer.
struct Update {
  double lr = 0;
  Index number = 1;           // counted from 1, for the moments' bias correction
  double gradient_scale = 1;  // see gradient_scale()
  int pass = 0;               // of Optimizer::passes()
  double gradient_norm = 0;   // over all parameters, before gradient_scale
  double loss_scale = 1;      // of the gradients, before gradient_scale
};

/// The factor that decoupled weight decay leaves of a weight: 1 - lr weight_decay, or 1.
float kept_after_decay(const deck::Optimizer& deck, const Update& update, bool decays);

/// The first half of an update that needs whole hidden matrices: each rank prepares what it holds
/// of them; the results are gathered to whole matrices and orthogonalized (newton_schulz.hpp), and
/// Optimizer::update() finds X in the place of their gradients.
class MatrixRule {
 public:
  virtual ~MatrixRule() = default;

  /// Writes the hidden matrices to orthogonalize, times Update::loss_scale, to Share::prepared.
  /// Other parameters' elements stay.
  virtual void prepare(const Place& place, const Update& update, const AnyShare& share) const = 0;
};

/// An update rule with its settings. Without state of its own: what it keeps lies in the arrays
/// that it declares, so const calls for several units may be under way at once.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Its name in decks and checkpoints. A checkpoint of one kind holds no state for another, even
  /// where the arrays have the same names.
  virtual std::string_view kind() const = 0;

  /// The arrays that the rule keeps, at most param::most_state_arrays; the first is
  /// param::master_weights. They start from zeros, but for the master weights. The reference is
  /// good as long as the object.
  virtual const param::StateArrays& state() const = 0;

  /// The rule for hidden matrices; null for an optimizer that needs no whole matrices.
  virtual const MatrixRule* matrix_rule() const { return nullptr; }

  /// The passes over all shares that an update takes. After each but the last the sums that it
  /// added up are summed over all ranks, for the next pass. Parameters change in the last alone.
  virtual int passes() const { return 1; }

  /// The 64-bit words of the sums over a parameter that a pass, but the last, adds up. Words of
  /// ranks are added one by one, modulo 2^64; their number is the same on all ranks.
  virtual Index sum_words([[maybe_unused]] int pass,
                          [[maybe_unused]] const param::ParamSpec& parameter) const {
    return 0;
  }

  /// The arrays that the rule keeps of rows and columns; they start from zeros.
  virtual const param::ReducedArrays& reduced_state() const {
    static const param::ReducedArrays none;
    return none;
  }

  /// Updates the reduced arrays of a parameter, one behind the other in the order of their
  /// declaration, before a pass but the first, with the sums of the pass before. Every rank does so
  /// for every parameter.
  virtual void update_reduced([[maybe_unused]] const Update& update,
                              [[maybe_unused]] const param::ParamSpec& parameter,
                              [[maybe_unused]] const std::uint64_t* sums,
                              [[maybe_unused]] float* reduced) const {}

  /// Returns whether update() needs arrays that the host reaches.
  virtual bool runs_on_host_alone() const { return false; }

  /// Makes a pass of an update: updates master weights, state and parameters of a share. The
  /// parameters are the master weights rounded to the run's precision.
  virtual void update(const Place& place, const Update& update, const AnyShare& share) const = 0;
};

/// The optimizer that a deck names: the one place where optimizers are told apart.
std::unique_ptr<const Optimizer> make_optimizer(const deck::Optimizer& deck);

}  // namespace kzero::optim

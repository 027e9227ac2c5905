// The interface between training and an optimizer: the state arrays that an optimizer declares, and
// the update of a shard. An optimizer updates the ranges that it is given. It does not know how
// training partitions parameters.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <variant>

#include "base/float16.hpp"
#include "deck/config.hpp"
#include "param/flat_layout.hpp"
#include "param/reduced_array.hpp"
#include "param/state_array.hpp"

namespace kzero::optim {

/// The addresses of the state of elements [0, n) of a unit, or of a rank's shard of it: one pointer
/// per declared array, in the order of declaration. Some arrays exist only for some parameters. The
/// address of such an array is null at an element that it lacks. At other elements it is valid up
/// to the end of the element's parameter.
class State {
 public:
  State() = default;
  State(std::initializer_list<float*> arrays) {
    for (float* array : arrays) add(array);
  }

  /// Appends the next array. There are at most param::max_state_arrays.
  void add(float* array) { arrays_[count_++] = {array, nullptr}; }

  /// Appends an array whose positions `range` gives. `range` must outlive the object.
  void add(float* array, const param::CompactRange& range) { arrays_[count_++] = {array, &range}; }

  std::size_t size() const { return count_; }
  float* operator[](std::size_t array) const {
    const auto& [data, range] = arrays_[array];
    if (range == nullptr) return data + at_;
    const Index place = range->position(at_);
    return place < 0 ? nullptr : data + place;
  }
  float* master() const { return (*this)[0]; }

  /// Returns the state from element n on.
  State operator+(Index n) const {
    State later = *this;
    later.at_ += n;
    return later;
  }

 private:
  struct Array {
    float* data;
    const param::CompactRange* range;  // null: elements are consecutive
  };
  std::array<Array, param::max_state_arrays> arrays_{};
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
  // For optimizers with several passes: the words of the sums of the unit's parameters,
  // Optimizer::sum_words() of them per parameter, in the order of parameters.
  const std::uint64_t* sums = nullptr;  // of the previous pass, over all ranks; in host memory
  std::uint64_t* adds = nullptr;        // of this pass, in the memory of the place; null if another
                                        // rank sums these elements
  const float* reduced = nullptr;  // in host memory: the unit's reduced arrays, in the same order
  Index tensor_rank = 0;  // replicated parameters are summed only on the rank that owns them
  T* prepared = nullptr;  // at begin: MatrixRule::prepare()'s result; may alias the gradient
};

/// A share in the run's precision.
using AnyShare = std::variant<Share<float>, Share<bf16>, Share<fp16>>;

struct Place;  // place.hpp

/// The factor on gradients in a step: unscaling by the loss scale, and clipping.
double gradient_scale(double norm, double clip, double loss_scale);

/// One step of the optimizer.
struct Update {
  double lr = 0;
  Index number = 1;           // counted from 1; for the bias correction of moments
  double gradient_scale = 1;  // see gradient_scale()
  int pass = 0;               // of Optimizer::passes()
  double gradient_norm = 0;   // over all parameters, before gradient_scale
  double loss_scale = 1;      // of the gradients, before gradient_scale
};

/// The factor of decoupled weight decay on a weight: 1 - lr weight_decay.
float kept_after_decay(const Update& update, double weight_decay);

/// The settings of a single parameter, from its group in the deck.
struct ParameterRates {
  double lr_scale = 1;  // factor on the learning rate
  double weight_decay = 0;
};
ParameterRates rates_of(const deck::Optimizer& deck, const param::ParamSpec& parameter);

/// The first half of an update that needs entire hidden matrices. Each rank prepares its part of
/// them. The results are gathered to entire matrices and orthogonalized (newton_schulz.hpp), and
/// all passes of Optimizer::update() get X instead of their gradients.
class MatrixRule {
 public:
  virtual ~MatrixRule() = default;

  /// Writes the hidden matrices to orthogonalize, times Update::loss_scale, to Share::prepared.
  /// Elements of other parameters are not changed.
  virtual void prepare(const Place& place, const Update& update, const AnyShare& share) const = 0;
};

/// An update rule with its settings. Its state is in the arrays that it declares, not in the
/// object, so const calls for several units may run at the same time.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Its name in decks and checkpoints. The state of one kind cannot be used by another kind, even
  /// if their arrays have the same names.
  virtual std::string_view kind() const = 0;

  /// The state arrays of the rule, at most param::max_state_arrays. The first is
  /// param::master_weights; all others start as zeros. The reference is valid as long as the
  /// object.
  virtual const param::StateArrays& state() const = 0;

  /// The rule for hidden matrices; null if the optimizer does not need entire matrices.
  virtual const MatrixRule* matrix_rule() const { return nullptr; }

  /// The number of passes of an update over all shares. Each pass except the last one adds up sums,
  /// which are then summed over all ranks for the next pass. Only the last pass changes parameters.
  virtual int passes() const { return 1; }

  /// The number of 64-bit words in the sums over a parameter that a pass adds up; the last pass
  /// adds up none. Words of ranks are added modulo 2^64. Their number is the same on all ranks.
  virtual Index sum_words([[maybe_unused]] int pass,
                          [[maybe_unused]] const param::ParamSpec& parameter) const {
    return 0;
  }

  /// The state arrays over rows and columns. They start as zeros.
  virtual const param::ReducedArrays& reduced_state() const {
    static const param::ReducedArrays none;
    return none;
  }

  /// Updates the reduced arrays of a parameter with the sums of the previous pass. `reduced` holds
  /// them one after another, in the order of declaration. Every rank calls this for every parameter
  /// before each pass except the first.
  virtual void update_reduced([[maybe_unused]] const Update& update,
                              [[maybe_unused]] const param::ParamSpec& parameter,
                              [[maybe_unused]] const std::uint64_t* sums,
                              [[maybe_unused]] float* reduced) const {}

  /// Returns whether update() can only run on arrays that the host can access.
  virtual bool runs_on_host_alone() const { return false; }

  /// Runs one pass of an update of a share: its master weights, state and parameters. The
  /// parameters become the master weights, rounded to the run's precision.
  virtual void update(const Place& place, const Update& update, const AnyShare& share) const = 0;
};

/// Returns the optimizer that a deck names. No other code distinguishes optimizers. `outputs` is
/// the axis of a hidden matrix along which its outputs are.
std::unique_ptr<const Optimizer> make_optimizer(const deck::Optimizer& deck,
                                                param::Axis outputs = param::Axis::row);

/// Does the same for the weights of the deck's model.
std::unique_ptr<const Optimizer> make_optimizer(const deck::Config& config);

}  // namespace kzero::optim

// The time of an update by each kind of optimizer compared with AdamW's: the blocks of gpt2-124m
// (85 million parameters) on one rank, all passes, without messages. The fastest of several counts.
//
//   optimizer_benchmark [repeats]      OMP_NUM_THREADS is 1 unless set
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/initialize.hpp"
#include "optim/optimizer.hpp"
#include "optim/place.hpp"
#include "runtime/session.hpp"

namespace {

using namespace kzero;

constexpr Index units = 12;

param::UnitSpec block() {
  const auto matrix = [](const char* name, Index rows, Index columns) {
    return param::ParamSpec{name, {rows, columns}, param::Init::normal, 0.02, true};
  };
  const auto vector = [](const char* name, Index length) {
    return param::ParamSpec{name, {length}, param::Init::zeros, 0, false};
  };
  return {"block",
          {vector("ln_1", 1536), matrix("c_attn", 768, 2304), vector("c_attn.bias", 2304),
           matrix("c_proj", 768, 768), vector("c_proj.bias", 768), vector("ln_2", 1536),
           matrix("c_fc", 768, 3072), vector("c_fc.bias", 3072), matrix("c_proj", 3072, 768),
           vector("c_proj.bias", 768)}};
}

/// An optimizer with all that it updates, of precision T.
template <class T>
class Case {
 public:
  explicit Case(const deck::Optimizer& deck)
      : optimizer_(optim::make_optimizer(deck)),
        layout_(table_, 1),
        gradient_("kzero::tests::gradient", layout_.total()),
        parameters_("kzero::tests::parameters", layout_.total()) {
    const Kokkos::View<float*> drawn("kzero::tests::drawn", layout_.total());
    const tensor::Vector<float> numbers(drawn.data(), drawn.extent(0));
    kernels::draw_normal(exec_, 1, 2, {0, layout_.total(), 0, layout_.total()}, 0.01F, numbers);
    kernels::round_to<T>(exec_, numbers, {gradient_.data(), gradient_.extent(0)});
    for (std::size_t i = 0; i < optimizer_->state().size(); ++i)
      state_.emplace_back("kzero::tests::state", layout_.total());
    for (int pass = 0; pass < optimizer_->passes(); ++pass)
      words_.emplace_back(static_cast<std::size_t>(units * words_of(pass)));
    std::size_t max_words = 0;
    for (const auto& words : words_) max_words = std::max(max_words, words.size());
    adds_ = Kokkos::View<std::uint64_t*>("kzero::tests::adds", max_words);
    Index reduced = 0;
    for (const auto& parameter : table_[0].params)
      reduced += param::length_of(optimizer_->reduced_state(), parameter.shape);
    reduced_.resize(static_cast<std::size_t>(units * reduced));
  }

  /// Seconds of one update.
  double update() {
    const auto begin = std::chrono::steady_clock::now();
    optim::Update update{.lr = 1e-4,
                         .number = ++number_,
                         .gradient_norm = 0.01 * std::sqrt(static_cast<double>(layout_.total()))};
    for (; update.pass < optimizer_->passes(); ++update.pass) {
      if (update.pass > 0) reduce(update);
      Kokkos::deep_copy(exec_, adds_, 0);
      for (Index u = 0; u < units; ++u) optimizer_->update(exec_, update, share(u, update.pass));
      read_sums(words_[update.pass]);
    }
    exec_.fence("kzero::tests::update");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  Index elements() const { return layout_.total(); }
  bool needs_matrices() const { return optimizer_->matrix_rule() != nullptr; }
  bool runs_here() const { return tensor::on_host || !optimizer_->runs_on_host_alone(); }

 private:
  Index words_of(int pass) const {
    Index words = 0;
    if (pass + 1 == optimizer_->passes()) return words;
    for (const auto& parameter : table_[0].params) words += optimizer_->sum_words(pass, parameter);
    return words;
  }

  /// Waits for the words that a pass added up.
  void read_sums(std::vector<std::uint64_t>& words) const {
    if (words.empty()) return;
    const Kokkos::View<std::uint64_t*, Kokkos::HostSpace> host(words.data(), words.size());
    Kokkos::deep_copy(host, Kokkos::subview(adds_, std::pair(std::size_t{0}, words.size())));
  }

  void reduce(const optim::Update& update) {
    const std::uint64_t* sums = words_[update.pass - 1].data();
    float* reduced = reduced_.data();
    for (Index u = 0; u < units; ++u) {
      for (const auto& parameter : table_[0].params) {
        optimizer_->update_reduced(update, parameter, sums, reduced);
        sums += optimizer_->sum_words(update.pass - 1, parameter);
        reduced += param::length_of(optimizer_->reduced_state(), parameter.shape);
      }
    }
  }

  optim::Share<T> share(Index u, int pass) {
    const param::UnitLayout& unit = layout_.unit(u);
    optim::Share<T> share{&table_[0],
                          &unit,
                          0,
                          unit.elements,
                          gradient_.data() + unit.begin,
                          parameters_.data() + unit.begin,
                          {}};
    for (const auto& array : state_) share.state.add(array.data() + unit.begin);
    if constexpr (std::is_same_v<T, float>) share.parameters = share.state.master();
    share.adds = adds_.data() + u * words_of(pass);
    if (pass > 0) share.sums = words_[pass - 1].data() + u * words_of(pass - 1);
    share.reduced = reduced_.data() + u * (std::ssize(reduced_) / units);
    return share;
  }

  const tensor::Execution exec_{};
  const std::unique_ptr<const optim::Optimizer> optimizer_;
  const param::Table table_ = param::Table(units, block());
  const param::FlatLayout layout_;
  Kokkos::View<T*> gradient_, parameters_;
  std::vector<Kokkos::View<float*>> state_;
  Kokkos::View<std::uint64_t*> adds_;              // of the current pass
  std::vector<std::vector<std::uint64_t>> words_;  // of each pass that is complete
  std::vector<float> reduced_;
  Index number_ = 0;
};

template <class T>
void measure(const char* precision, int repeats) {
  double adamw = 0;
  fmt::print("{}\n{:<12}{:>12}{:>14}{:>10}\n", precision, "kind", "ms", "ns/element", "AdamW's");
  for (const auto& [name, kind, meaning] : deck::optimizers) {
    deck::Optimizer deck;
    deck.kind = kind;
    Case<T> one(deck);
    if (one.needs_matrices()) {
      fmt::print("{:<12}see muon_benchmark\n", name);
      continue;
    }
    if (!one.runs_here()) {
      fmt::print("{:<12}runs on hosts alone\n", name);
      continue;
    }
    double best = std::numeric_limits<double>::infinity();
    for (int r = 0; r <= repeats; ++r) best = std::min(best, one.update());
    if (kind == deck::OptimizerKind::adamw) adamw = best;
    fmt::print("{:<12}{:>12.1f}{:>14.3f}{:>9.2f}x\n", name, best * 1e3,
               best * 1e9 / static_cast<double>(one.elements()), best / adamw);
  }
}

}  // namespace

int main(int argc, char** argv) {
  setenv("OMP_NUM_THREADS", "1", 0);
  const kzero::runtime::Session session({.threads = 0});
  const int repeats = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  measure<float>("fp32", repeats);
  measure<kzero::bf16>("bf16", repeats);
}

// A model of random weights as a Decoder. The weights do not depend on the number of ranks.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "comm/backends.hpp"
#include "grid/process_grid.hpp"
#include "model/decoder.hpp"
#include "model/model.hpp"
#include "param/flat_layout.hpp"
#include "support/device_memory.hpp"
#include "support/numbers.hpp"

namespace kzero::tests {

template <class T>
class RandomModel {
 public:
  RandomModel(const deck::Model& model, const grid::Group& ranks, const model::DecoderShape& shape)
      : gemm_(tensor::make_gemm(deck::GemmBackend::automatic)) {
    const model::TensorRank rank{ranks.rank(), ranks.size()};
    deck::Config config;
    config.model = model;
    const param::Table table = model::define(config)->table(rank);
    const param::FlatLayout layout(table, 1);
    std::uint64_t seed = 100;
    for (std::size_t unit = 0; unit < table.size(); ++unit) {
      std::vector<T> values(layout.unit(static_cast<Index>(unit)).padded, T(0.0F));
      for (std::size_t i = 0; i < table[unit].params.size(); ++i)
        draw(table[unit].params[i], ++seed, values.data() + layout.units()[unit].offsets[i]);
      memory_.emplace_back("kzero::tests::unit", values.size());
      to_device(values, memory_.back().data());
    }
    std::vector<const T*> units;
    for (const auto& one : memory_) units.push_back(one.data());
    model::TensorLink link{rank};
    if (ranks.size() > 1) {
      comm_ =
          comm::make_communicator(deck::CommunicatorKind::mpi, comm::Overlap::no, ranks, traffic_);
      link.comm = comm_.get();
    }
    const model::DecoderResources resources{shape, gemm_.get(), link};
    decoder_ = model::make_decoder<T>(model, resources, units, ledger_);
    EXPECT_EQ(ledger_.peaks(), model::decoder_bytes(model, resources, dtype_of<T>));
  }

  model::Decoder& operator*() { return *decoder_; }

 private:
  static void draw(const param::ParamSpec& p, std::uint64_t seed, T* to) {
    const std::vector<float> all = numbers<float>(p.elements(), seed, 0.5);
    const float centre = p.init == param::Init::ones ? 1 : 0;
    p.split.for_each_run(0, p.held(), [&](Index local, Index in_parameter, Index count) {
      for (Index i = 0; i < count; ++i)
        to[local + i] = static_cast<T>(centre + all[in_parameter + i]);
    });
  }

  std::unique_ptr<tensor::Gemm> gemm_;
  comm::Traffic traffic_;
  std::unique_ptr<comm::Communicator> comm_;
  memory::Ledger ledger_;
  std::vector<Kokkos::View<T*, tensor::Memory>> memory_;
  std::unique_ptr<model::Decoder> decoder_;
};

}  // namespace kzero::tests

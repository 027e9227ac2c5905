// What a run holds and sends is what was planned, to the byte and to the element.
#include <gtest/gtest.h>

#include "base/float16.hpp"
#include "support/training.hpp"
#include "train/reports.hpp"
#include "zero/bucket.hpp"

namespace kzero::tests {
namespace {

std::vector<deck::Config> decks() {
  std::vector<deck::Config> all;
  for (const Dtype precision : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    all.push_back(small_deck(precision));
    all.push_back(small_deck(precision));
    all.back().model.tied_embeddings = false;
    all.back().model.feed_forward = 31;
    all.back().train.micro_batch = 2, all.back().train.global_batch = 16;
    all.back().zero.bucket = 509;
  }
  return all;
}

std::string describe(const deck::Config& config) {
  return std::string(name_of(config.train.precision)) +
         (config.model.tied_embeddings ? ", tied" : ", untied");
}

TEST(Plan, BytesOfEveryCategoryAreTheLedgersPeak) {
  const grid::Group group = first_ranks(launch_ranks());
  for (const deck::Config& config : decks()) {
    Training training(config, group);
    training.engine->initialise({});
    training.run(0, 2);
    training.engine->validate(1, *training.dataset.training);
    const memory::Bytes planned = train::planned_bytes(training.config, {group.size(), 1});
    EXPECT_EQ(planned, training.engine->planned()) << describe(config);
    EXPECT_EQ(planned, training.ledger.peaks()) << describe(config);
  }
}

// Model states of paper section 3.1: with 16-bit parameters 2 + 2 + 12 bytes each, in fp32 4 + 4
// + 8. What a category holds beyond them is the alignment of its units, at most 31 + ranks elements
// each.
TEST(Plan, ModelStatesAre16BytesAParameter) {
  const grid::Group group = first_ranks(launch_ranks());
  for (const deck::Config& config : decks()) {
    const memory::Bytes planned =
        train::planned_bytes(resolved(config, group.size()), {group.size(), 1});
    const param::Table table = model::gpt_table(config.model);
    const Index parameters = param::elements_of(table);
    const Index slack = static_cast<Index>(table.size()) * (31 + group.size());
    const Index bytes = bytes_of(config.train.precision);
    const auto expect = [&](memory::Category category, Index each) {
      EXPECT_GE(planned[position(category)], parameters * each) << describe(config);
      EXPECT_LE(planned[position(category)], (parameters + slack) * each + 3 * 63)
          << describe(config);
    };
    expect(memory::Category::parameters, bytes);
    expect(memory::Category::gradients, bytes);
    expect(memory::Category::optimizer, bytes == 4 ? 8 : 12);
  }
}

TEST(Plan, TheLedgerIsEmptyAfterTheRun) {
  const grid::Group group = first_ranks(launch_ranks());
  memory::Ledger ledger;
  {
    const deck::Config config = resolved(small_deck(), group.size());
    comm::Traffic traffic;
    const auto comm = comm::make_communicator("mpi", group, traffic);
    const auto gemm = tensor::make_gemm(tensor::Backend::reference);
    const auto engine = train::make_engine(config, {group.size(), 1}, *comm, group, *gemm, ledger);
    EXPECT_GT(ledger.now(memory::Category::parameters), 0);
  }
  for (std::size_t i = 0; i < memory::category_count; ++i) {
    EXPECT_EQ(ledger.now(static_cast<memory::Category>(i)), 0) << memory::category_names[i];
  }
}

// Paper section 7.1: reduce-scatter and all-gather of the gradients move 2 P (N - 1) / N elements a
// step; each unit's P is padded to a multiple of N here.
TEST(Plan, CountedTrafficIsTheory) {
  const grid::Group group = first_ranks(launch_ranks());
  constexpr Index steps = 3;
  for (const deck::Config& config : decks()) {
    Training training(config, group);
    training.engine->initialise({});
    training.run(0, steps);
    training.engine->validate(1, *training.dataset.training);
    const Index ranks = group.size();
    const auto rows = train::counted(training.traffic, steps,
                                     train::theory(training.config, training.engine->layout()));
    ASSERT_EQ(rows.size(), ranks == 1 ? 0U : 2U) << describe(config);
    Index padded = 0;
    for (const param::UnitSpec& unit : training.engine->table())
      padded += round_up(unit.elements(), ranks);
    ASSERT_LT(padded - param::elements_of(training.engine->table()),
              ranks * static_cast<Index>(training.engine->table().size()));
    Index elements = 0;
    for (const metrics::TrafficRow& row : rows) {
      EXPECT_EQ(row.elements_per_step, row.theory_elements_per_step) << row.operation;
      EXPECT_EQ(row.bytes_per_step, row.elements_per_step * bytes_of(config.train.precision))
          << row.operation;
      EXPECT_EQ(row.group, "data");
      EXPECT_EQ(row.purpose, "gradients");
      elements += row.elements_per_step;
    }
    EXPECT_EQ(elements, 2 * (padded / ranks) * (ranks - 1)) << describe(config);
    if (ranks == 1) continue;
    // Totals, not means that could round: nothing is sent outside of steps.
    for (const auto& [channel, volume] : training.traffic.volumes())
      EXPECT_EQ(volume.elements * 2, steps * elements);
  }
}

TEST(Plan, AModelThatDoesNotFitIsAnErrorThatNamesTheCategory) {
  deck::Config config = small_deck();
  config.model.hidden = 65535, config.model.layers = 1000;
  const grid::Group group = first_ranks(launch_ranks());
  memory::Ledger ledger;
  comm::Traffic traffic;
  config = resolved(config, group.size());
  const auto comm = comm::make_communicator("mpi", group, traffic);
  const auto gemm = tensor::make_gemm(tensor::Backend::reference);
  try {
    train::make_engine(config, {group.size(), 1}, *comm, group, *gemm, ledger);
    FAIL() << "two hundred terabytes were had";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::memory);
    EXPECT_NE(std::string(error.what()).find("for parameters"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace kzero::tests

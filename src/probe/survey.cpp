#include "probe/survey.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>

#include "base/checksum.hpp"
#include "engine/arithmetic.hpp"
#include "grid/agreement.hpp"
#include "grid/clocks.hpp"
#include "tensor/gemm.hpp"

namespace kzero::probe {

namespace {

/// A small value of every rank, in rank order on the root.
template <class Value>
std::vector<Value> gathered(const grid::Group& world, const Value& mine) {
  std::vector<Value> all;
  for (const std::string& text : world.gather({reinterpret_cast<const char*>(&mine), sizeof mine}))
    std::memcpy(&all.emplace_back(), text.data(), sizeof mine);
  return all;
}

std::int64_t wall_clock() {
  return std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// The leader of each node measures its wall clock against the first node's. The root gets all
/// differences, in the order of nodes.
std::vector<WallClock> measure_clocks(const Launch& launch) {
  const grid::Nodes& nodes = launch.nodes;
  const int rank = launch.world.rank();
  const bool is_leader = nodes.first_rank(nodes.of(rank)) == rank;
  const grid::Group leaders = launch.world.part(is_leader ? 0 : 1, "leaders of nodes");
  WallClock mine;
  if (is_leader) {
    constexpr double nanosecond = 1e-9;
    const grid::ClockOffset offset = grid::measure_offset(leaders, &wall_clock, false);
    mine = {static_cast<double>(offset.ahead) * nanosecond,
            static_cast<double>(offset.accuracy) * nanosecond};
  }
  wait_for_all(launch.world);
  const auto all = gathered(launch.world, mine);
  std::vector<WallClock> clocks;
  for (int node = 0; node < nodes.count() && !all.empty(); ++node)
    clocks.push_back(all[nodes.first_rank(node)]);
  return clocks;
}

}  // namespace

Survey survey(const Launch& launch, const deck::Config& config) {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_ptr<tensor::Gemm> gemm;
  grid::collectively(launch.world, [&] { gemm = tensor::make_gemm(config.run.gemm); });
  Survey found;
  found.ranks = launch.world.size();
  found.threads = launch.threads;
  const Facts facts = all_facts({.threads = launch.threads,
                                 .cores = launch.cores,
                                 .arithmetic = engine::arithmetic_of(*gemm, ""),
                                 .bits = product_bits(*gemm, config)});
  found.comparison = compare(launch.world, facts);
  const Speed speed = measure_speed(launch.world, *gemm, config.train.precision, launch.threads);
  wait_for_all(launch.world);
  found.figures.ranks = gathered(launch.world, speed);
  found.figures.within = measure_within(launch.world, launch.nodes);
  found.figures.between = measure_between(launch.world, launch.nodes);
  const std::vector<WallClock> clocks = measure_clocks(launch);
  if (!launch.world.is_root()) return {};
  summarize(found.figures, launch.nodes, clocks);
  found.findings = find_odd(found.figures, launch.nodes);
  found.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return found;
}

namespace {

constexpr Index widest_rows = 512, widest_columns = 4096;  // of products whose bits are compared

}  // namespace

std::string product_bits(tensor::Gemm& gemm, const deck::Config& config) {
  const tensor::Execution exec;
  const Index rows = std::min(config.train.micro_batch * config.model.sequence, widest_rows);
  const Index width = std::min(config.model.hidden, widest_columns);
  const Index wide = std::min(4 * config.model.hidden, widest_columns);
  const Index vocabulary = std::min(config.model.vocab, widest_columns);
  const engine::ProductShape shapes[] = {
      {rows, wide, width}, {rows, width, wide}, {width, wide, rows}, {rows, vocabulary, width}};
  std::array<std::uint64_t, std::size(shapes)> digests{};
  for (std::size_t i = 0; i < std::size(shapes); ++i) {
    const engine::Product product(exec, shapes[i], config.train.precision);
    product.run(gemm);
    digests[i] = product.digest();
  }
  return format_checksum(checksum(std::as_bytes(std::span(digests))));
}

}  // namespace kzero::probe

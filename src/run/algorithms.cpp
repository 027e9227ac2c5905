#include "run/algorithms.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <span>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/printable.hpp"
#include "comm/launch_watch.hpp"
#include "engine/engine.hpp"
#include "engine/memory_report.hpp"
#include "grid/agreement.hpp"
#include "grid/process_grid.hpp"
#include "storage/atomic_file.hpp"
#include "tensor/gemm.hpp"

namespace kzero::run {

namespace {

constexpr Index max_bytes = Index{1} << 20;  // of a table; one with a hundred products has 30 KB

tensor::AlgorithmChoice& choice_of(tensor::Gemm& gemm, const std::string& what) {
  tensor::AlgorithmChoice* choice = gemm.algorithms();
  KZERO_REQUIRE(
      choice != nullptr, ExitCode::usage,
      "{}: this run multiplies with {}; only run.gemm = \"cublaslt\", in builds for CUDA, "
      "lets kzero choose algorithms",
      what, gemm.arithmetic());
  return *choice;
}

void write(const std::string& file, const std::string& text) {
  storage::AtomicFile out(file);
  out.append(std::as_bytes(std::span(text)));
  out.finish();
}

}  // namespace

std::string load_algorithms(const std::string& file) {
  if (file.empty()) return "";
  std::string text = load_file(file, max_bytes);
  static_cast<void>(tensor::read_algorithms({printable(file), text}));
  return text;
}

void use_algorithms(const deck::Run& run, const std::string& text, const grid::Group& world,
                    tensor::Gemm& gemm) {
  if (run.algorithms.empty()) return;
  const std::string of_root = world.broadcast(text);
  grid::collectively(world, [&] {
    choice_of(gemm, "run.algorithms")
        .use(tensor::read_algorithms({printable(run.algorithms), of_root}));
  });
}

std::string algorithms_note(const deck::Run& run, tensor::Gemm& gemm) {
  if (run.algorithms.empty()) return "";
  const auto used = gemm.algorithms()->used();
  return fmt::format("algorithms  {} of {} different products take theirs from {}", used.from_table,
                     used.products, printable(run.algorithms));
}

void measure_algorithms(const RunRequest& request, const runtime::Session& session,
                        const std::string& file) {
  const deck::Config& config = request.config;
  const grid::ProcessGrid grid(config.grid.data, config.grid.tensor, config.placement.node_of_rank,
                               config.grid.sequence);
  const grid::Group& world = grid.world();
  const comm::LaunchWatch watch(session, world, config.run.watchdog, config.run.heartbeat);
  engine::Machinery machinery(config, session.threads(), grid);
  grid::collectively(world, [&] {
    choice_of(*machinery.gemm, "--algorithms");
    std::error_code ignored;
    KZERO_REQUIRE(!world.is_root() || !std::filesystem::exists(file, ignored), ExitCode::files,
                  "{} exists; --algorithms writes a new file", printable(file));
  });
  const RunInputs inputs = request.open_inputs(config, world);
  std::unique_ptr<engine::Engine> engine;
  grid::collectively(world, [&] {
    engine = engine::make_engine(
        config, engine::Blueprint(config, grid.data().size(), engine::tensor_rank(grid)),
        machinery);
  });
  engine->initialise(inputs.initial, inputs.adapters);
  tensor::AlgorithmChoice& choice = *machinery.gemm->algorithms();
  choice.measure();
  engine->step(0, *inputs.dataset.training);
  grid::collectively(world, [&] {
    if (!world.is_root()) return;
    const tensor::MeasuredAlgorithms found = choice.measured();
    KZERO_REQUIRE(found.products > 0, ExitCode::usage,
                  "--algorithms: the deck's first step has nothing to compute");
    const std::string line = fmt::format(
        "{} different products take {:.2f} ms of a step, and {:.2f} ms with the {} faster "
        "algorithms of this table",
        found.products, found.heuristic_ms, found.ms, found.table.products.size());
    write(file, tensor::as_toml(found.table, line));
    std::cout << printable(file) << ": " << line << '\n';
  });
}

}  // namespace kzero::run

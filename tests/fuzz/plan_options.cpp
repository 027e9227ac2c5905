// The options of `kzero plan`, one a line: what is accepted is in the range that it claims.
#include <CLI/CLI.hpp>
#include <cmath>
#include <sstream>

#include "app/plan_command.hpp"
#include "fuzz.hpp"

namespace {

using namespace kzero;

bool is_rate(const std::optional<double>& rate) {
  return !rate || (std::isfinite(*rate) && *rate > 0);
}

void check(const app::PlanArguments& a) {
  for (const auto& list : {a.ranks, a.tensor}) {
    for (const Index ranks : list) fuzz::require(ranks >= 1 && ranks <= 1'000'000, "ranks");
  }
  fuzz::require(!a.fit || *a.fit >= 1, "bytes to fit into");
  fuzz::require(a.parameters >= 0, "a number of parameters");
  fuzz::require(!a.stage || (*a.stage >= 0 && *a.stage <= 3), "a stage");
  fuzz::require(
      is_rate(a.rates.operations) && is_rate(a.rates.sent_bytes) && is_rate(a.rates.memory_bytes),
      "rates are positive numbers");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream lines(std::string(reinterpret_cast<const char*>(data), size));
  std::vector<std::string> words;
  for (std::string line; std::getline(lines, line);) words.insert(words.begin(), line);  // CLI11's
  words.emplace_back("plan");
  CLI::App cli;
  app::PlanArguments arguments;
  app::add_plan(cli, arguments);
  try {
    cli.parse(words);
  } catch (const CLI::Error&) {
    return 0;
  }
  check(arguments);
  return 0;
}

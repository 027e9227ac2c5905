#include "app/inference_command.hpp"

#include <CLI/CLI.hpp>

#include "app/launch.hpp"
#include "comm/failure.hpp"
#include "comm/launch_watch.hpp"
#include "deck/config.hpp"
#include "grid/process_grid.hpp"

namespace kzero::app {

void add_precision(CLI::App& command, std::optional<Dtype>& precision) {
  command
      .add_option_function<std::string>(
          "--precision",
          [&precision](const std::string& name) {
            for (const Dtype one : {Dtype::fp32, Dtype::bf16, Dtype::fp16})
              if (name == name_of(one)) precision = one;
          },
          "fp32 (default), bf16 or fp16")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
}

void add_special_tokens(CLI::App& command, infer::SpecialTokens& special) {
  command.add_flag_callback(
      "--no-special-tokens", [&special] { special = infer::SpecialTokens::left_out; },
      "leave out the tokens that the tokenizer adds around a text, such as <|begin_of_text|>");
}

ExitCode run_inference(const std::function<ExitCode(const runtime::Session&)>& command) {
  const auto as_cores_allow = [] {
    check_launch(grid::world_group());
    return Index{0};
  };
  const runtime::Session session({.choose_threads = as_cores_allow, .has_heartbeat = true});
  // Waits have no time limit. Errors that NCCL reports while no thread calls it, and nodes that
  // fall silent, end the command.
  const comm::LaunchWatch watch(session, grid::world_group(), 0, deck::Run().heartbeat);
  return comm::ending_launch_on_failure([&] { return command(session); });
}

}  // namespace kzero::app

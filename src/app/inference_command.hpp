// The parts that `kzero evaluate`, `generate` and `compare` share.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <optional>

#include "base/error.hpp"
#include "base/types.hpp"
#include "infer/token_text.hpp"
#include "runtime/session.hpp"

namespace kzero::app {

/// Adds --precision; parsing fills `precision` if the option is given.
void add_precision(CLI::App& command, std::optional<Dtype>& precision);

/// Adds --no-special-tokens; parsing changes `special` if it is given.
void add_special_tokens(CLI::App& command, infer::SpecialTokens& special);

/// Checks the launch, initializes MPI and Kokkos with as many threads as the node's cores allow,
/// and runs the command. A rank that fails alone ends the launch. Collective over the launch.
ExitCode run_inference(const std::function<ExitCode(const runtime::Session&)>& command);

}  // namespace kzero::app

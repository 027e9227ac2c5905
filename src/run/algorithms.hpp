// Measured algorithms of matrix products (run.algorithms): a run's table of them, and the
// measurement that makes one.
#pragma once

#include <string>

#include "deck/config.hpp"
#include "grid/group.hpp"
#include "run/trainer.hpp"
#include "runtime/session.hpp"

namespace kzero::tensor {
class Gemm;
}

namespace kzero::run {

/// Returns the text of the file; of no file, nothing. Throws Error(files) if it cannot be read,
/// Error(usage) with everything that is wrong with it.
std::string load_algorithms(const std::string& file);

/// Makes the products of a run take the algorithms of its table, if the deck names one. `text` is
/// that of the root, so all ranks have the same table. Throws AgreedError(usage) if it is for other
/// devices, or if the back end takes none. Collective over `world`.
void use_algorithms(const deck::Run& run, const std::string& text, const grid::Group& world,
                    tensor::Gemm& gemm);

/// After the first step: how many of its products the table has. Empty without a table.
std::string algorithms_note(const deck::Run& run, tensor::Gemm& gemm);

/// Runs one step of the deck, compares algorithms for each of the root's products, and writes the
/// table to a new file; prints a line about it. Throws AgreedError, for a build without algorithms
/// (usage) and for a file that exists (files). Collective over all ranks of the session.
void measure_algorithms(const RunRequest& request, const runtime::Session& session,
                        const std::string& file);

}  // namespace kzero::run

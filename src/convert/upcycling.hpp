// Makes a mixture of experts of a dense model's weights: sparse upcycling (arXiv 2212.05055), and
// with `drop` also drop-upcycling (arXiv 2502.19261). All random numbers are functions of the seed,
// the parameter and the element.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convert/export.hpp"
#include "deck/config.hpp"

namespace kzero::convert {

struct Upcycling {
  Index experts = 0;            // model.experts; 0: the model stays dense
  Index experts_per_token = 2;  // model.experts_per_token
  double drop = 0;              // share of each expert's channels that are drawn anew
  std::uint64_t seed = 1;
};

/// The deck of the mixture. The dense model must be of the Llama family. A model with norms of
/// queries and keys stays in it, another one becomes a Mixtral. Gates are normalized, so that
/// experts that are copies compute together what the dense part computes.
/// model.router_aux_loss becomes 0.01, as in the paper. Throws Error(usage) for a model that has
/// experts, is of another family, or breaks a rule of the deck, and Error(files) if no class of
/// transformers computes the mixture. `from` is the dense model's name in messages.
deck::Config upcycled(deck::Config dense, const Upcycling& how, const std::string& from);

/// The weights of the mixture. Each expert is a copy of the dense feed-forward part. The routers
/// are drawn from a normal distribution with model.init_std. With `drop`, that share of each
/// expert's channels (rows of gate_proj and up_proj, columns of down_proj) is drawn from normal
/// distributions with the mean and the deviation that these channels have in the dense matrix.
/// `parameters` are those of `model`. Throws Error(other) if they do not correspond to the dense
/// ones, which is a mistake in the program.
ExportSource upcycled_weights(const ExportSource& dense, const deck::Model& model,
                              std::vector<checkpoint::Parameter> parameters, const Upcycling& how);

}  // namespace kzero::convert

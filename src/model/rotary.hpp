// The angles of rotary positions (Su et al., arXiv 2104.09864), and how they are scaled for
// sequences longer than those that a model was trained on.
#pragma once

#include <vector>

#include "deck/config.hpp"

namespace kzero::model {

/// The angles by which one position turns the pairs of a head [head_dim / 2]: theta^(-2 j /
/// head_dim), scaled as model.rope_scaling says: linear (Chen et al., arXiv 2306.15595), llama3
/// (Llama 3.1's by wavelength) or yarn (Peng et al., arXiv 2309.00071).
std::vector<double> rotary_frequencies(const deck::Model& model);

/// Rows of [sequence, head_dim]: the cosines of a position's angles, then their sines, both times
/// yarn's attention factor, rounded once.
std::vector<float> rotary_table(const deck::Model& model);

}  // namespace kzero::model

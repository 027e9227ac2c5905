// The angles of rotary positions (Su et al., arXiv 2104.09864) and their scaling for sequences
// longer than the training sequences.
#pragma once

#include <vector>

#include "deck/config.hpp"

namespace kzero::model {

/// The angles by which one position rotates the pairs of a head [head_dim / 2]: theta^(-2 j /
/// head_dim), scaled by the method that model.rope_scaling names: linear (Chen et al., arXiv
/// 2306.15595), llama3 (by wavelength, as in Llama 3.1) or yarn (Peng et al., arXiv 2309.00071).
std::vector<double> rotary_frequencies(const deck::Model& model);

/// Rows of [sequence, head_dim]: the cosines of a position's angles, then their sines. Both are
/// multiplied by yarn's attention factor and rounded once.
std::vector<float> rotary_table(const deck::Model& model);

/// The table, followed by that of layers with a window if model.window_rope_theta is set. Without
/// it all layers have one table.
std::vector<float> rotary_tables(const deck::Model& model);

}  // namespace kzero::model

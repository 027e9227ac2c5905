#pragma once

namespace kzero::tensor {

/// Whether a result is added to the previous value (yes) or replaces it (no). Gradients are
/// accumulated over micro-batches and over several uses of a parameter.
enum class Accumulate { no, yes };

}  // namespace kzero::tensor

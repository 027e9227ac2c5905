#include "model/transformer_families.hpp"

#include "base/error.hpp"

namespace kzero::model {

const TransformerFamily& transformer_family(deck::ModelFamily family) {
  for (const TransformerFamily& known : transformer_families) {
    if (known.family == family) return known;
  }
  fail(ExitCode::other, "internal error: the transformer has no family {}",
       static_cast<int>(family));
}

}  // namespace kzero::model

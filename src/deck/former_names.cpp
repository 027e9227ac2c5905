#include "deck/former_names.hpp"

namespace kzero::deck {

namespace {

struct Renamed {
  std::string_view path, before, now;
};

// Megatron-LM's "selective" recomputes core attention; no mode of kzero does that.
constexpr Renamed renamed_choices[] = {{"recompute.mode", "selective", "layernorm_gelu"},
                                       {"recompute.mode", "block", "full"}};

// The key applied only to LayerNorm before there was RMSNorm.
constexpr std::string_view layernorm_eps = "model.layernorm_eps";

}  // namespace

std::string_view path_now(std::string_view path) {
  return path == layernorm_eps ? "model.norm_eps" : path;
}

std::string_view successor_of(std::string_view path, std::string_view name) {
  for (const Renamed& renamed : renamed_choices) {
    if (renamed.path == path && renamed.before == name) return renamed.now;
  }
  return {};
}

}  // namespace kzero::deck

// The keys of [model].
#include "deck/key_builders.hpp"

namespace kzero::deck {

namespace {

/// A key that defines the function the weights compute.
Key defining(Key key) {
  key.defines_model = true;
  return key;
}

/// A key that only these families have.
Key only_in(std::initializer_list<ModelFamily> families, Key key) {
  key.depends_on = "model.family";
  for (const ModelFamily family : families) key.uses.push_back({std::string(name_of(family))});
  return key;
}

/// Keys of the architecture: of Llama's family, and of every family but GPT-2.
Key llama(Key key) { return defining(only_in({ModelFamily::llama}, std::move(key))); }
Key rotary(Key key) {
  return defining(only_in({ModelFamily::llama, ModelFamily::olmo2, ModelFamily::gemma3,
                           ModelFamily::apertus, ModelFamily::olmoe, ModelFamily::mixtral},
                          std::move(key)));
}

/// Keys of mixtures of experts.
Key with_experts(Key key) {
  return only_in({ModelFamily::llama, ModelFamily::olmoe, ModelFamily::mixtral}, std::move(key));
}

constexpr auto t = &Config::model;

std::vector<Key> architecture() {
  return {
      choice("model.family", t, &Model::family, families, meanings(families)),
      integer("model.layers", t, &Model::layers, from(1, 10000), "", "Transformer blocks."),
      integer("model.hidden", t, &Model::hidden, from(1, 100000), "",
              "Width; a multiple of model.heads unless model.head_dim is set."),
      integer("model.heads", t, &Model::heads, from(1, 10000), "", "Attention heads."),
      rotary(integer("model.kv_heads", t, &Model::kv_heads, from(0, 10000), "",
                     "Key and value heads, a divisor of model.heads; 0: model.heads.")),
      rotary(integer("model.head_dim", t, &Model::head_dim, from(0, 100000), "",
                     "Width of a head, an even number; 0: model.hidden / model.heads.")),
      integer("model.sequence", t, &Model::sequence, from(1, 1000000), "tokens",
              "Sequence length; in \"gpt2\" also the number of learned positions."),
      integer("model.vocab", t, &Model::vocab, from(1, 2147483647), "tokens",
              "Vocabulary size; at least 256 for data.format = \"bytes\"."),
      integer("model.feed_forward", t, &Model::feed_forward, from(0, 1000000), "",
              "Width of the feed-forward part, or of each expert; 0: 4 * model.hidden, with a gate "
              "8/3 * model.hidden, rounded up to a multiple of 256."),
      llama(boolean("model.qkv_bias", t, &Model::qkv_bias,
                    "Queries, keys and values have biases, as in Qwen2.")),
      rotary(integer("model.window", t, &Model::window, from(0, 1000000), "tokens",
                     "Tokens that a token sees in layers with a window, itself among them; 0: all "
                     "before it.")),
      rotary(integer("model.full_attention_every", t, &Model::full_attention_every, from(0, 10000),
                     "layers",
                     "With model.window: every so many layers one sees all tokens before, as in "
                     "Gemma 3 (6) and OLMo 3 (4); 0: no layer does.")),
      llama(boolean("model.qk_norm", t, &Model::qk_norm,
                    "RMSNorm over each head of queries and keys, as in Qwen3.")),
      rotary(real("model.attention_scale", t, &Model::attention_scale, from(0, 1e6), "",
                  "Factor on the scores of attention; 0: 1 / sqrt(model.head_dim).")),
      rotary(real("model.embedding_scale", t, &Model::embedding_scale, from(0, 1e6), "",
                  "Factor on embeddings; 0: 1, in \"gemma3\" sqrt(model.hidden).")),
      rotary(real("model.residual_scale", t, &Model::residual_scale, above(0, 1e6), "",
                  "Factor on what a block's parts add to the residual stream, as in Granite.")),
      rotary(real("model.logit_divisor", t, &Model::logit_divisor, above(0, 1e6), "",
                  "Logits are divided by it, as in Granite.")),
      boolean("model.tied_embeddings", t, &Model::tied_embeddings,
              "The output projection uses the weights of the token embedding."),
      real("model.norm_eps", t, &Model::norm_eps, above(0, 1), "",
           "Added to the variance, or mean square, in norms."),
  };
}

std::vector<Key> rope() {
  return {
      real("model.rope_theta", t, &Model::rope_theta, above(0, 1e12), "",
           "Base of the rotary wavelengths."),
      real("model.window_rope_theta", t, &Model::window_rope_theta, from(0, 1e12), "",
           "The base in layers with model.window, which then have no model.rope_scaling, as in "
           "Gemma "
           "3 and OLMo 3; 0: these layers rotate as the others do."),
      choice("model.rope_scaling", t, &Model::rope_scaling, rope_scalings,
             "Scaling of rotary angles for sequences longer than model.rope_original_sequence."),
      real("model.rope_factor", t, &Model::rope_factor, from(1, 1e6), "",
           "Factor by which model.rope_scaling lengthens wavelengths."),
      integer("model.rope_original_sequence", t, &Model::rope_original_sequence, from(0, 1e9),
              "tokens", "Length without scaling; \"llama3\" and \"yarn\" need it."),
      real("model.rope_low_freq_factor", t, &Model::rope_low_freq_factor, above(0, 1e6), "",
           "\"llama3\": angles with fewer turns than this within model.rope_original_sequence are "
           "scaled in full."),
      real("model.rope_high_freq_factor", t, &Model::rope_high_freq_factor, above(0, 1e6), "",
           "\"llama3\": angles with more turns than this are not scaled."),
      real("model.rope_beta_fast", t, &Model::rope_beta_fast, above(0, 1e6), "",
           "\"yarn\": angles with more turns than this within model.rope_original_sequence are not "
           "scaled."),
      real("model.rope_beta_slow", t, &Model::rope_beta_slow, above(0, 1e6), "",
           "\"yarn\": angles with fewer turns than this are scaled in full."),
      real("model.rope_attention_factor", t, &Model::rope_attention_factor, from(0, 1e6), "",
           "\"yarn\": factor on queries and keys; 0: 0.1 ln(model.rope_factor) + 1."),
  };
}

std::vector<Key> experts() {
  return {
      defining(with_experts(integer(
          "model.experts", t, &Model::experts, from(0, 1024), "",
          "Experts: feed-forward parts of each block, of which a router chooses "
          "model.experts_per_token for each token; 0: one feed-forward part for all tokens."))),
      defining(
          with_experts(integer("model.experts_per_token", t, &Model::experts_per_token, from(0, 64),
                               "", "Experts that compute a token: at most model.experts."))),
      defining(with_experts(
          boolean("model.normalized_gates", t, &Model::normalized_gates,
                  "The gates of a token's experts are divided by their sum; false: they are "
                  "probabilities among all experts, as in OLMoE."))),
      defining(with_experts(integer("model.shared_feed_forward", t, &Model::shared_feed_forward,
                                    from(0, 1e6), "",
                                    "Width of a shared expert, which computes every token; 0: "
                                    "there is none."))),
      defining(with_experts(boolean("model.shared_gate", t, &Model::shared_gate,
                                    "The shared expert's result is multiplied by the sigmoid of a "
                                    "product with the token's vector, as in Qwen2-MoE."))),
      defining(with_experts(choice(
          "model.router_score", t, &Model::router_score, router_scores,
          "Scores by which a router chooses experts, of its logits: their softmax, or the sigmoid "
          "of each."))),
      defining(with_experts(
          boolean("model.router_bias", t, &Model::router_bias,
                  "Each expert has a bias, which is added to its score for the choice alone. It "
                  "balances experts without a loss."))),
      with_experts(real("model.router_bias_rate", t, &Model::router_bias_rate, from(0, 1), "",
                        "Change of a bias after each step: up if fewer tokens of the global batch "
                        "chose the expert than the mean of its block, down if more.")),
      with_experts(real("model.router_aux_loss", t, &Model::router_aux_loss, from(0, 100), "",
                        "Factor on the loss that balances experts: the sum over blocks of "
                        "model.experts * sum of (share of choices) * (mean probability), over a "
                        "micro-batch. Only gradients have it, not the reported loss.")),
      with_experts(real("model.router_z_loss", t, &Model::router_z_loss, from(0, 100), "",
                        "Factor on the mean of log(Z)^2 of each block's router, which keeps its "
                        "logits small; only gradients have it.")),
  };
}

std::vector<Key> the_rest() {
  return {
      text("model.config", t, &Model::config,
           "A config.json, or its folder, that sets the keys of the architecture; empty: none."),
      only_in({ModelFamily::gpt2, ModelFamily::llama, ModelFamily::apertus},
              real("model.dropout", t, &Model::dropout, below(0, 1), "",
                   "Probability with which training drops an element that a block adds to the "
                   "residual stream, in \"gpt2\" also of the embedding.")),
      real("model.attention_dropout", t, &Model::attention_dropout, below(0, 1), "",
           "Probability with which training drops a weight of attention."),
      boolean("model.sequence_parallel", t, &Model::sequence_parallel,
              "The grid.tensor ranks also split norms and the residual stream by rows: fewer "
              "activations, more gathers, other rounding."),
      choice("model.init", t, &Model::init, initializations,
             "\"normal\": all initial matrices have the deviation model.init_std; \"scaled\": "
             "those that write to the residual stream have 1 / sqrt(2 model.layers) of it."),
      only_in(
          {ModelFamily::llama, ModelFamily::olmo2, ModelFamily::gemma3, ModelFamily::apertus},
          integer("model.base_width", t, &Model::base_width, from(0, 100000), "",
                  "Width for which model.init_std and optimizer.lr were chosen: those of hidden "
                  "matrices, scores and logits follow model.hidden (muP); 0: nothing does.")),
      same_bits(real("model.init_std", t, &Model::init_std, from(0, 10), "",
                     "Standard deviation of the initial weights.")),
      same_bits(
          text("model.initial", t, &Model::initial,
               "Weights to start from: a safetensors file, an index of several, or a Hugging Face "
               "folder; empty: random.")),
  };
}

}  // namespace

void add_model_keys(std::vector<Key>& table) {
  for (Key& key : architecture()) table.push_back(defining(std::move(key)));
  for (Key& key : rope()) table.push_back(rotary(std::move(key)));
  table.push_back(
      llama(integer("model.no_rope_every", t, &Model::no_rope_every, from(0, 10000), "layers",
                    "Every so many layers one has no rotary positions, as in SmolLM3 (4); 0: all "
                    "have them.")));
  for (Key& key : experts()) table.push_back(std::move(key));
  for (Key& key : the_rest()) table.push_back(std::move(key));
}

}  // namespace kzero::deck

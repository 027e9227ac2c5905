// The typed form of an input deck, the only one that other folders see: plain values with their
// defaults. The key table (schema.hpp) reads, checks and documents them. Units: bytes for sizes,
// seconds for times, tokens for lengths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace kzero::deck {

enum class Schedule { cosine, linear, wsd, constant };
enum class DataFormat { bytes, llmc, megatron, raw, documents, pairs, automatic };
enum class DataOrder { shuffled, sequential };
enum class Accumulate { automatic, local, reduced };
enum class Offload { none, host };
enum class Overlap { automatic, off, on };
enum class ReductionOrder { ranks, library };
enum class RecomputeMode { none, layernorm_gelu, feed_forward, full };
enum class ProgressStyle { automatic, live, plain };
enum class GemmBackend { automatic, onednn, blas, cublaslt, hipblaslt, reference };
enum class CommunicatorKind { automatic, mpi, nccl };
enum class AttentionKind { automatic, cudnn, kzero };
enum class OptimizerKind { adamw, ademamix, sgd, lion, lamb, adafactor, muon, normuon };
/// The polynomials with which Muon orthogonalizes matrices.
enum class Polynomials { jordan, polar_express };
enum class Replay { off, note, check };
enum class ModelFamily { gpt2, llama, olmo2, gemma3, apertus, olmoe, mixtral };
/// How a router turns logits into scores of experts.
enum class RouterScore { softmax, sigmoid };
enum class RopeScaling { none, linear, llama3, yarn };
enum class Initialization { scaled, normal };
enum class PreferenceLoss { none, dpo, ipo, simpo, orpo };

/// A value of an enum, its spelling in decks, and what it means.
template <class Value>
struct Choice {
  std::string_view name;
  Value value;
  std::string_view meaning{};  // for the deck reference; empty: in the text of the key
};

// Other folders print these choices, so their names are here, in the order of the deck reference. A
// new back end adds one value to its enum and one line to its list.
inline constexpr Choice<RecomputeMode> recompute_modes[] = {
    {"none", RecomputeMode::none},
    {"layernorm_gelu", RecomputeMode::layernorm_gelu},
    {"feed_forward", RecomputeMode::feed_forward},
    {"full", RecomputeMode::full}};
inline constexpr Choice<GemmBackend> gemm_backends[] = {
    {"auto", GemmBackend::automatic},      {"onednn", GemmBackend::onednn},
    {"blas", GemmBackend::blas},           {"cublaslt", GemmBackend::cublaslt},
    {"hipblaslt", GemmBackend::hipblaslt}, {"reference", GemmBackend::reference}};
inline constexpr Choice<CommunicatorKind> communicators[] = {{"auto", CommunicatorKind::automatic},
                                                             {"mpi", CommunicatorKind::mpi},
                                                             {"nccl", CommunicatorKind::nccl}};
inline constexpr Choice<AttentionKind> attention_kinds[] = {{"auto", AttentionKind::automatic},
                                                            {"cudnn", AttentionKind::cudnn},
                                                            {"kzero", AttentionKind::kzero}};
// data/formats.cpp has a line for each of these, too.
inline constexpr Choice<DataFormat> data_formats[] = {
    {"bytes", DataFormat::bytes, "each byte is a token"},
    {"llmc", DataFormat::llmc, "llm.c's token files"},
    {"megatron", DataFormat::megatron,
     "the .bin files of Megatron-LM's datasets, next to their .idx"},
    {"raw", DataFormat::raw, "tokens of data.token_bytes without a header"},
    {"documents", DataFormat::documents,
     "documents with targets, packed into sequences (docs/data.md)"},
    {"pairs", DataFormat::pairs,
     "pairs of documents, a chosen and a rejected one, for preference.loss"}};
inline constexpr Choice<OptimizerKind> optimizers[] = {
    {"adamw", OptimizerKind::adamw}, {"ademamix", OptimizerKind::ademamix},
    {"sgd", OptimizerKind::sgd},     {"lion", OptimizerKind::lion},
    {"lamb", OptimizerKind::lamb},   {"adafactor", OptimizerKind::adafactor},
    {"muon", OptimizerKind::muon},   {"normuon", OptimizerKind::normuon}};
inline constexpr Choice<Polynomials> polynomial_sets[] = {
    {"jordan", Polynomials::jordan, "the same five times"},
    {"polar_express", Polynomials::polar_express, "five that fit each other (Polar Express)"}};
inline constexpr Choice<ModelFamily> families[] = {
    {"gpt2", ModelFamily::gpt2, "LayerNorm, learned positions, GELU, biases"},
    {"llama", ModelFamily::llama,
     "RMSNorm, rotary positions, SwiGLU: Llama, Mistral, Qwen2, Qwen3, Qwen3-MoE, SmolLM3, "
     "Granite"},
    {"olmo2", ModelFamily::olmo2,
     "as \"llama\", with norms after the two parts of a block, not before, and RMSNorm over all "
     "heads of queries and of keys: OLMo 2, OLMo 3"},
    {"gemma3", ModelFamily::gemma3,
     "as \"llama\", with norms before and after the two parts, RMSNorm over each head, a GELU gate "
     "and scaled embeddings; norms multiply by 1 + weight"},
    {"apertus", ModelFamily::apertus,
     "as \"llama\", with RMSNorm over each head, and xIELU in place of a gate"},
    {"olmoe", ModelFamily::olmoe,
     "as \"llama\" with experts, with RMSNorm over all heads of queries and of keys: OLMoE"},
    {"mixtral", ModelFamily::mixtral, "as \"llama\" with experts, under the names of Mixtral"}};
inline constexpr Choice<RouterScore> router_scores[] = {{"softmax", RouterScore::softmax},
                                                        {"sigmoid", RouterScore::sigmoid}};
inline constexpr Choice<RopeScaling> rope_scalings[] = {{"none", RopeScaling::none},
                                                        {"linear", RopeScaling::linear},
                                                        {"llama3", RopeScaling::llama3},
                                                        {"yarn", RopeScaling::yarn}};
inline constexpr Choice<PreferenceLoss> preference_losses[] = {{"none", PreferenceLoss::none},
                                                               {"dpo", PreferenceLoss::dpo},
                                                               {"ipo", PreferenceLoss::ipo},
                                                               {"simpo", PreferenceLoss::simpo},
                                                               {"orpo", PreferenceLoss::orpo}};
inline constexpr Choice<Initialization> initializations[] = {{"scaled", Initialization::scaled},
                                                             {"normal", Initialization::normal}};

/// The name of a value in `choices`; empty if it is not there.
template <class Value, std::size_t count>
constexpr std::string_view name_in(const Choice<Value> (&choices)[count], Value value) {
  for (const Choice<Value>& choice : choices) {
    if (choice.value == value) return choice.name;
  }
  return {};
}

constexpr std::string_view name_of(RecomputeMode mode) { return name_in(recompute_modes, mode); }
constexpr std::string_view name_of(GemmBackend backend) { return name_in(gemm_backends, backend); }
constexpr std::string_view name_of(DataFormat format) { return name_in(data_formats, format); }
constexpr std::string_view name_of(CommunicatorKind kind) { return name_in(communicators, kind); }
constexpr std::string_view name_of(AttentionKind kind) { return name_in(attention_kinds, kind); }
constexpr std::string_view name_of(OptimizerKind kind) { return name_in(optimizers, kind); }
constexpr std::string_view name_of(ModelFamily family) { return name_in(families, family); }
constexpr std::string_view name_of(PreferenceLoss loss) { return name_in(preference_losses, loss); }
constexpr std::string_view name_of(RouterScore score) { return name_in(router_scores, score); }
constexpr std::string_view name_of(RopeScaling scaling) { return name_in(rope_scalings, scaling); }

struct Model {
  ModelFamily family = ModelFamily::gpt2;
  std::string config{};  // config.json that sets the keys of the architecture; empty: none
  Index layers = 4;
  Index hidden = 128;
  Index heads = 4;
  Index kv_heads = 0;  // 0: heads; zeros here and below are resolved by the rules
  Index head_dim = 0;  // 0: hidden / heads
  Index sequence = 128;
  Index vocab = 256;
  Index feed_forward = 0;  // 0: 4 * hidden; llama: 8/3 * hidden, rounded up to a multiple of 256
  Index experts = 0;       // feed-forward parts of that width in each block; 0: one, for all tokens
  Index experts_per_token = 0;    // that compute a token
  bool normalized_gates = true;   // the gates of a token's experts sum to 1
  Index shared_feed_forward = 0;  // width of an expert that computes every token; 0: none
  bool shared_gate = false;       // of that expert, a sigmoid
  RouterScore router_score = RouterScore::softmax;
  bool router_bias = false;         // of each expert, for the choice alone
  double router_bias_rate = 0.001;  // its change after each step
  double router_aux_loss = 0;       // factor on the loss that balances experts
  double router_z_loss = 0;         // factor on log(Z)^2 of the router
  bool qkv_bias = false;
  bool qk_norm = false;
  bool tied_embeddings = true;
  double norm_eps = 1e-5;
  Index window = 0;                // keys that a query sees in layers with a window; 0: all
  Index full_attention_every = 0;  // every so many layers one has no window; 0: all have it
  double rope_theta = 10000;
  double window_rope_theta = 0;  // in layers with a window, without scaling; 0: as in all others
  Index no_rope_every = 0;       // every so many layers one does not rotate; 0: all do
  RopeScaling rope_scaling = RopeScaling::none;
  double rope_factor = 1;            // by which the scaling lengthens wavelengths
  Index rope_original_sequence = 0;  // llama3, yarn: the length before scaling
  double rope_low_freq_factor = 1;   // llama3: angles with fewer turns in that length are scaled
  double rope_high_freq_factor = 4;  // llama3: angles with more turns in that length are not scaled
  double rope_beta_fast = 32;        // yarn: angles with more turns in that length are not scaled
  double rope_beta_slow = 1;         // yarn: angles with fewer turns in that length are scaled
  double rope_attention_factor = 0;  // yarn: on cosine and sine; 0: 0.1 ln(rope_factor) + 1
  double attention_scale = 0;        // factor on scores; 0: 1 / sqrt(head_dim)
  double embedding_scale = 0;        // factor on embeddings; 0: 1, gemma3: sqrt(hidden)
  double residual_scale = 1;         // factor on what halves of blocks add to the stream
  double logit_divisor = 1;
  double dropout = 0;              // probability, of what halves of blocks add to the stream
  double attention_dropout = 0;    // probability, of the weights of attention
  bool sequence_parallel = false;  // tensor ranks also split norms and sums by rows
  Index base_width = 0;            // width whose rates and deviations are the deck's (muP); 0: all
  Initialization init = Initialization::scaled;
  double init_std = 0.02;
  std::string initial{};  // safetensors file, index or folder to start from; empty: train.seed

  bool operator==(const Model&) const = default;
};

/// Low-rank adapters (LoRA, Hu et al., arXiv 2106.09685): the model's own parameters are frozen.
struct Lora {
  Index rank = 0;                      // r; 0: no adapters, all parameters train
  double alpha = 16;                   // an adapter's product is scaled by alpha / rank
  std::vector<std::string> targets{};  // the last parts of the names of linear layers
  std::string initial{};               // PEFT folder to start from; empty: train.seed
};

/// Returns whether a run trains adapters alone.
constexpr bool trains_adapters(const Lora& lora) { return lora.rank > 0; }

/// The loss of pairs of documents. s is the sum of ln p of a document's targets, r that under the
/// reference model, n their number.
struct Preference {
  PreferenceLoss loss = PreferenceLoss::none;
  double beta = 0.1;
  double smooth = 0;        // dpo: share of pairs whose labels are taken to be swapped
  double gamma = 0;         // simpo: margin
  double nll = 0;           // factor on the mean -ln p of the chosen document
  std::string reference{};  // file of r of each document; dpo, ipo
};

/// Returns whether a loss compares with a reference model.
constexpr bool has_reference(PreferenceLoss loss) {
  return loss == PreferenceLoss::dpo || loss == PreferenceLoss::ipo;
}

/// Returns whether a run learns from pairs.
constexpr bool prefers(const Preference& preference) {
  return preference.loss != PreferenceLoss::none;
}

/// The most probable tokens of a teacher, from which a student learns.
struct Distill {
  std::vector<std::string> file{};  // of a teacher's probabilities, one for each source; none: off
  double weight = 0.5;              // of the divergence from the teacher in the loss
  Index top = 64;                   // tokens of each position
};

/// Returns whether a run learns from a teacher.
constexpr bool distills(const Distill& distill) { return !distill.file.empty(); }

/// The bytes of a position in distill.file: its tokens, ln p of each, and a checksum.
constexpr Index teacher_position_bytes(Index top) { return 8 * top + 8; }

struct Grid {
  Index data = 0;  // 0: number of ranks / tensor
  Index tensor = 1;
  Index sequence = 1;  // data-parallel ranks that share each sequence; divides `data`
  Index node = 0;      // ranks that count as a node's; 0: as the ranks are placed
};

/// Where sums of gradients are kept between the micro-batches of a step: by the owner of each
/// shard, or by each node. Automatic: nodes, if that takes little memory (engine/sums_place.hpp).
enum class KeepsSums { automatic, owners, nodes };

/// The ranks that share one copy of partitioned parameters: all data-parallel ranks, or those of a
/// node.
enum class SharesParameters { ranks, node };

struct Zero {
  Index stage = 2;
  Index bucket = Index{32} << 20;  // bytes (C_B)
  Index prefetch_units = 1;        // stage 3: units gathered ahead of the one in use
  SharesParameters parameters = SharesParameters::ranks;
  Accumulate accumulate = Accumulate::automatic;
  KeepsSums gradients = KeepsSums::automatic;  // between the micro-batches of a step
  Offload offload = Offload::none;             // of the optimizer's state
  Overlap overlap = Overlap::automatic;        // collectives move data while the rank computes
  ReductionOrder reduction = ReductionOrder::ranks;  // of the sums of gradients
};

/// Activation checkpointing: what backward recomputes instead of keeping it.
struct Recompute {
  RecomputeMode mode = RecomputeMode::none;
  bool partition = false;           // a tensor rank keeps only its rows of each block's input (P_a)
  Offload offload = Offload::none;  // of the kept inputs of blocks

  bool operator==(const Recompute&) const = default;
};

/// A table of [[train.phase]]: another batch size from a step on.
struct BatchPhase {
  Index from_step = 0;
  Index global_batch = 0;
};

struct Train {
  Index steps = 100;
  Index global_batch = 8;            // sequences per step, over all ranks, until the first phase
  std::vector<BatchPhase> phases{};  // in ascending order of steps
  Index micro_batch = 0;      // sequences a rank computes at once; 0: global_batch / data ranks, or
                              // the greatest common divisor of all sizes / data ranks
  Index sum_blocks = 4;       // blocks of micro-batches whose gradients are added first
  Index sequence_chunks = 0;  // parts of a sequence with their own gradients; 0: grid.sequence
  Index tile_rows = 0;        // of a tile, in which the feed-forward part runs; 0: a whole chunk
  Dtype precision = Dtype::fp32;
  double z_loss = 0;  // factor on log(Z)^2 of each target in the gradient's loss
  std::uint64_t seed = 1;
  Index validate_every = 0;      // steps; 0: never
  Index validation_batches = 8;  // global batches per validation
};

/// A key of [optimizer] that only some kinds have: one such kind, and the key's default for it.
struct OptimizerKey {
  OptimizerKind kind;
  std::string_view name;
  double default_value;  // 0 or 1 for false or true
};

inline constexpr OptimizerKey optimizer_keys[] = {
    {OptimizerKind::adamw, "beta1", 0.9},
    {OptimizerKind::adamw, "beta2", 0.95},
    {OptimizerKind::adamw, "eps", 1e-8},
    {OptimizerKind::adamw, "cautious_decay", 0},
    {OptimizerKind::ademamix, "beta1", 0.9},
    {OptimizerKind::ademamix, "beta2", 0.999},
    {OptimizerKind::ademamix, "eps", 1e-8},
    {OptimizerKind::ademamix, "beta3", 0.9999},
    {OptimizerKind::ademamix, "alpha", 8},
    {OptimizerKind::ademamix, "slow_warmup", 0},
    {OptimizerKind::ademamix, "cautious_decay", 0},
    {OptimizerKind::sgd, "momentum", 0.9},
    {OptimizerKind::sgd, "nesterov", 0},
    {OptimizerKind::sgd, "cautious_decay", 0},
    {OptimizerKind::lion, "beta1", 0.9},
    {OptimizerKind::lion, "beta2", 0.99},
    {OptimizerKind::lion, "cautious_decay", 0},
    {OptimizerKind::lamb, "beta1", 0.9},
    {OptimizerKind::lamb, "beta2", 0.999},
    {OptimizerKind::lamb, "eps", 1e-8},
    {OptimizerKind::adafactor, "eps", 1e-30},
    {OptimizerKind::muon, "momentum", 0.95},
    {OptimizerKind::muon, "nesterov", 1},
    {OptimizerKind::muon, "beta1", 0.9},
    {OptimizerKind::muon, "beta2", 0.95},
    {OptimizerKind::muon, "eps", 1e-8},
    {OptimizerKind::muon, "cautious_decay", 0},
    {OptimizerKind::normuon, "momentum", 0.95},
    {OptimizerKind::normuon, "nesterov", 1},
    {OptimizerKind::normuon, "beta1", 0.9},
    {OptimizerKind::normuon, "beta2", 0.95},
    {OptimizerKind::normuon, "eps", 1e-8},
    {OptimizerKind::normuon, "cautious_decay", 0},
};

/// A table of [[optimizer.group]]: parameters with their own learning rate and weight decay.
struct OptimizerGroup {
  std::string match{};       // a pattern over parameter names, with * and ?
  double lr_scale = 1;       // factor on the learning rate
  double weight_decay = -1;  // of all its parameters; -1: as without the group
};

/// Keys of the optimizer. Defaults of keys in optimizer_keys are AdamW's, or those of the first
/// kind that has the key. If a deck of another kind does not set a key, it gets that kind's default
/// (reader.hpp).
struct Optimizer {
  OptimizerKind kind = OptimizerKind::adamw;
  double lr = 3e-4;
  double min_lr = 3e-5;
  Index warmup = 0;  // steps
  Schedule schedule = Schedule::cosine;
  Index decay = 0;  // wsd: the last steps, in which the rate falls
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double beta3 = 0.9999;  // ademamix: of the slow moment
  double alpha = 8;       // ademamix: factor on the slow moment
  Index slow_warmup = 0;  // ademamix: updates until both have these values; 0: train.steps
  double momentum = 0.9;
  bool nesterov = false;
  Polynomials polynomials = Polynomials::jordan;
  double weight_decay = 0.1;
  bool cautious_decay = false;     // only of weights that the update brings nearer to 0
  double clip = 1.0;               // global L2 norm; 0: no clipping
  double loss_scale = 65536;       // fp16: the initial scale
  Index loss_scale_window = 1000;  // fp16: steps without overflow before it doubles
  Index max_skipped = 50;          // consecutive skipped steps that end the run as diverged
  double skip_above = 0;           // a step with a norm above this multiple of the median; 0: off
  Index skip_window = 100;         // applied steps whose norms have that median
  double ema = 0;                  // decay of the moving average of the weights; 0: none
  std::vector<OptimizerGroup> groups{};  // the first that matches a parameter sets its values
};

/// A table of [[data.blend]]: one source of training samples.
struct BlendSource {
  std::string name{};                // in reports; empty: the first of files; resolved by the rules
  std::vector<std::string> files{};  // share of the samples: weight / sum of all weights
  double weight = 1;                 // its share of the samples is this over the sum of all
};

/// Returns the number, from 0, of the first group whose pattern matches the parameter's name; -1 if
/// none does.
Index group_of(const std::vector<OptimizerGroup>& groups, const std::string& parameter);

struct Data {
  std::vector<std::string> files;  // paths or globs
  std::vector<BlendSource> blend;  // instead of files
  DataFormat format = DataFormat::bytes;
  Index token_bytes = 2;  // raw: of a token
  Index end_token = -1;   // ends a document of a stream; -1: sequences are not divided
  DataOrder order = DataOrder::shuffled;
  Index goldfish_k = 0;                       // one training target in so many is left out; 0: none
  Index goldfish_h = 50;                      // tokens before a target that decide
  std::vector<std::string> validation_files;  // paths or globs; empty: validation_fraction of files
  double validation_fraction = 0.0;           // the last part of the training tokens
};

/// Returns whether files of a format hold documents with targets.
constexpr bool is_of_documents(DataFormat format) {
  return format == DataFormat::documents || format == DataFormat::pairs;
}

/// Returns whether a run's sequences hold several documents, with or without targets.
constexpr bool has_documents(const Data& data) {
  return is_of_documents(data.format) || data.end_token >= 0;
}

/// A table of [[evaluate]]: data on which the loss is computed in addition to validation.
struct Evaluation {
  std::string name{};                         // in reports; empty: the first of files
  std::vector<std::string> files{};           // paths or globs
  DataFormat format = DataFormat::automatic;  // automatic: that of [data]; resolved by the rules
  Index token_bytes = 0;                      // raw: of a token; 0: that of [data]
  Index every = 0;                            // steps; 0: at the end only
  Index batches = 0;                          // global batches per evaluation; 0: all there are
};

struct Checkpoint {
  std::string folder;            // empty: no checkpoints
  Index every = 0;               // steps; 0: only at the end and on a stop
  Index keep = 3;                // newest complete checkpoints to keep; 0: all
  Index keep_every = 0;          // steps; also keeps the first at or after each multiple; 0: none
  Index ranks_per_file = 1;      // consecutive ranks that write one file collectively
  bool asynchronous = false;     // a thread writes while training continues
  bool resume = true;            // continue from the newest complete checkpoint in folder
  bool strict = false;           // a damaged newest checkpoint is an error
  bool allow_new_data = false;   // resume with other training data than before
  bool reset_optimizer = false;  // resume with the weights only if optimizer.kind changes
};

struct Run {
  double wall_limit = 0;    // seconds from the start of the program; 0: the batch system's limit
  double stop_margin = 60;  // seconds before the limit at which to stop
  std::string stop_file;    // the run stops once it exists; empty: none
  std::string end_file;     // receives how the run ended; empty: end.json in checkpoint.folder
  double watchdog = 1800;   // seconds that a rank waits for others before the run ends; 0: for ever
  double heartbeat = 45;    // seconds of silence of a node before the run ends; 0: for ever
  double slow_node_share = 0.2;  // share of steps' time that others wait for a slow node; 0: off
  Index max_steps = 0;  // steps of this job after which it stops with a checkpoint; 0: none
  Index log_every = 1;
  ProgressStyle progress = ProgressStyle::automatic;
  CommunicatorKind communicator = CommunicatorKind::automatic;
  std::string metrics;  // JSON lines file; empty: none
  std::string profile;  // time line of all ranks, in Chrome's trace format; empty: none
  std::string profile_steps = "10-12";     // first and last recorded step, from 0
  Index profile_buffer = Index{32} << 20;  // bytes for a rank's spans until they are written
  Index threads = 0;  // per rank; 0: OMP_NUM_THREADS, otherwise the node's cores / its ranks
  GemmBackend gemm = GemmBackend::automatic;
  std::string algorithms;  // file with the measured algorithms of products; empty: none
  AttentionKind attention = AttentionKind::automatic;
  bool deterministic = true;     // false: cuDNN's attention may add gradients in any order
  double peak_tflops = 0;        // per rank, for MFU; 0: measured at start
  Replay replay = Replay::note;  // for steps that run.metrics has from before a restart
  Index verify_every = 0;        // steps; 0: never
};

/// The first and the last of consecutive steps, numbered from 0.
struct StepRange {
  Index first = 0;
  Index last = 0;
};

/// Parses run.profile_steps, "10-12"; empty unless it is two numbers in ascending order.
std::optional<StepRange> profiled_steps(const Run& run);

/// Where the ranks of a launch run, as far as this affects how they communicate. Not part of a
/// deck: a launch detects it, and a plan is given it.
struct Placement {
  std::vector<int> node_of_rank{};  // of every rank of the launch; empty: they share a node
  Index data_nodes = 1;             // nodes of each data group; 0: with different numbers of ranks
  bool shares_cores = false;        // a node's ranks have more threads than cores
  std::string shared_device{};      // names ranks that compute on one device; empty: none do
};

struct Config {
  Model model;
  Lora lora;
  Preference preference;
  Distill distill;
  Grid grid;
  Zero zero;
  Recompute recompute;
  Train train;
  Optimizer optimizer;
  Data data;
  Checkpoint checkpoint;
  Run run;
  std::vector<Evaluation> evaluate;
  Placement placement{};  // not set by keys
};

}  // namespace kzero::deck

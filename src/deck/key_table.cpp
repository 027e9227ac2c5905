#include <fmt/format.h>

#include "deck/key_builders.hpp"

namespace kzero::deck {

namespace {

void add_lora(std::vector<Key>& table) {
  constexpr auto t = &Config::lora;
  table.push_back(integer("lora.rank", t, &Lora::rank, from(0, 1000000), "",
                          "Rank of the adapters (LoRA). The model's own weights, from "
                          "model.initial, are then frozen; 0: no adapters."));
  table.push_back(real("lora.alpha", t, &Lora::alpha, above(0, 1e6), "",
                       "Adapters are scaled by lora.alpha / lora.rank."));
  table.push_back(
      texts("lora.targets", t, &Lora::targets,
            "Layers that get an adapter. llama: q_proj, k_proj, v_proj, o_proj, gate_proj, "
            "up_proj, down_proj; gpt2: c_attn, c_proj, c_fc; \"all-linear\": all of them."));
  table.push_back(same_bits(
      text("lora.initial", t, &Lora::initial,
           "PEFT folder with the adapters to start from; empty: A is random, and B is zero.")));
}

void add_grid(std::vector<Key>& table) {
  constexpr auto t = &Config::grid;
  table.push_back(integer("grid.data", t, &Grid::data, from(0, 1000000), "ranks",
                          "Data-parallel ranks; 0: number of ranks / grid.tensor."));
  table.push_back(
      integer("grid.tensor", t, &Grid::tensor, from(1, 10000), "ranks",
              "Tensor-parallel ranks, neighbours in rank order. Must divide model.heads."));
  table.push_back(integer("grid.sequence", t, &Grid::sequence, from(1, 10000), "ranks",
                          "Data-parallel ranks that share each sequence. Must divide grid.data, "
                          "and the heads of a tensor rank. Up to the number of KV heads, no bit "
                          "changes if train.sequence_chunks is the same."));
  table.push_back(
      same_bits(integer("grid.node", t, &Grid::node, from(0, 1000000), "ranks",
                        "Ranks per node to assume; 0: as the ranks are placed; 1: ranks share no "
                        "memory. No bit changes.")));
}

void add_zero(std::vector<Key>& table) {
  constexpr auto t = &Config::zero;
  table.push_back(
      same_bits(integer("zero.stage", t, &Zero::stage, from(0, 3), "",
                        "State that data-parallel ranks partition. 0: nothing; 1: optimizer "
                        "state; 2: also gradients; 3: also parameters.")));
  table.push_back(same_bits(size("zero.bucket", t, &Zero::bucket, from(256, 0x1p40),
                                 "Buffer through which gradients are reduced in chunks.")));
  table.push_back(
      same_bits(integer("zero.prefetch_units", t, &Zero::prefetch_units, from(0, 10000), "units",
                        "Stage 3: units (blocks) to gather ahead of the one in use.")));
  table.push_back(same_bits(choice(
      "zero.parameters", t, &Zero::parameters,
      {{"rank", SharesParameters::ranks}, {"node", SharesParameters::node}},
      "Stage 3 on several nodes: \"rank\" partitions the parameters over all ranks; \"node\" over "
      "the ranks of each node, which then receives updated shards once a step. No bit changes.")));
  table.push_back(
      choice("zero.accumulate", t, &Zero::accumulate,
             {{"auto", Accumulate::automatic},
              {"local", Accumulate::local},
              {"reduced", Accumulate::reduced}},
             "\"auto\" and \"reduced\" reduce the gradients of each micro-batch and accumulate in "
             "fp32. \"local\" accumulates first and reduces once (stages 0 and 1, or one "
             "data-parallel rank): it sends less, but bits depend on the number of ranks."));
  table.push_back(same_bits(choice(
      "zero.gradients", t, &Zero::gradients,
      {{"auto", KeepsSums::automatic}, {"rank", KeepsSums::owners}, {"node", KeepsSums::nodes}},
      "On several nodes, \"rank\" sends the gradients of every micro-batch to their owners; "
      "\"node\" sends a node's sums once a step; \"auto\": \"node\", unless this adds more than "
      "half to the planned memory of a rank's model states in stages 2 and 3 "
      "(docs/parallelism.md). No bit changes.")));
  table.push_back(same_bits(
      choice("zero.offload", t, &Zero::offload, {{"none", Offload::none}, {"host", Offload::host}},
             "Place of the optimizer state and its update: with the model, or on the "
             "CPU. Equal in builds without a device.")));
  table.push_back(
      same_bits(choice("zero.overlap", t, &Zero::overlap,
                       {{"auto", Overlap::automatic}, {"on", Overlap::on}, {"off", Overlap::off}},
                       "Communicate while the rank computes. \"auto\": with NCCL, or if "
                       "data-parallel ranks are on several nodes.")));
  table.push_back(
      choice("zero.reduction", t, &Zero::reduction,
             {{"ordered", ReductionOrder::ranks}, {"library", ReductionOrder::library}},
             "\"ordered\": gradients are added in fp32, in the order of train.sum_blocks. "
             "\"library\": NCCL adds them; rounding depends on ranks and machine."));
}

void add_recompute(std::vector<Key>& table) {
  constexpr auto t = &Config::recompute;
  table.push_back(choice("recompute.mode", t, &Recompute::mode, recompute_modes,
                         "What backward recomputes. \"layernorm_gelu\": outputs of LayerNorm and "
                         "GELU; \"feed_forward\": also the first product of the feed-forward part; "
                         "\"full\": a block, from its input."));
  table.push_back(boolean("recompute.partition", t, &Recompute::partition,
                          "With recompute.mode = \"full\": each tensor rank keeps only its part of "
                          "a block's input (P_a)."));
  table.push_back(choice("recompute.offload", t, &Recompute::offload,
                         {{"none", Offload::none}, {"host", Offload::host}},
                         "With recompute.mode = \"full\": place of the kept inputs, with the model "
                         "or in host memory."));
}

void add_train(std::vector<Key>& table) {
  constexpr auto t = &Config::train;
  table.push_back(integer("train.steps", t, &Train::steps, from(1, max_count), "steps",
                          "Optimizer steps of the entire training, over all its jobs."));
  table.push_back(
      integer("train.global_batch", t, &Train::global_batch, from(1, 1000000), "sequences",
              "Sequences of one step, over all ranks, until a [[train.phase]] begins."));
  table.push_back(
      integer("train.micro_batch", t, &Train::micro_batch, from(0, 1000000), "sequences",
              "Sequences that a rank computes at once; 0: its share of train.global_batch, with "
              "[[train.phase]] of the greatest common divisor of all sizes."));
  table.push_back(
      integer("train.sum_blocks", t, &Train::sum_blocks, from(1, 1000000), "blocks",
              "Blocks of consecutive micro-batches. Gradients are added within blocks, then over "
              "blocks in pairs. Use at least as many as nodes: a node sends one sum for its "
              "complete blocks. More need more memory. Bits depend on the number."));
  table.push_back(
      integer("train.sequence_chunks", t, &Train::sequence_chunks, from(0, 10000), "chunks",
              "Parts of a sequence whose gradients are added like those of micro-batches. A "
              "multiple of grid.sequence that divides model.sequence; 0: grid.sequence. More than "
              "1 needs train.micro_batch = 1. Bits depend on the number."));
  table.push_back(integer("train.tile_rows", t, &Train::tile_rows, from(0, max_count), "tokens",
                          "Rows of a tile, which the feed-forward part computes at once; 0: all. "
                          "With recompute.mode = \"feed_forward\" or \"full\", its wide "
                          "activations exist for one tile only. Bits depend on the number."));
  table.push_back(
      choice("train.precision", t, &Train::precision,
             {{"fp32", Dtype::fp32}, {"bf16", Dtype::bf16}, {"fp16", Dtype::fp16}},
             "Type of weights, activations and gradients; master weights and moments are fp32."));
  table.push_back(real("train.z_loss", t, &Train::z_loss, from(0, 1), "",
                       "Adds this times log(Z)^2 to the trained loss of each target, where Z is "
                       "the denominator of its softmax (PaLM: 1e-4)."));
  table.push_back(integer("train.seed", t, &Train::seed, from(0, largest_exact), "",
                          "Seed of the initial weights, the order of the data and dropout."));
  table.push_back(same_bits(
      integer("train.validate_every", t, &Train::validate_every, from(0, max_count), "steps",
              "Steps from one validation to the next; 0: never. With model.initial, "
              "also before the first step.")));
  table.push_back(same_bits(
      integer("train.validation_batches", t, &Train::validation_batches, from(1, max_count),
              "batches", "Batches of train.global_batch sequences that one validation reads.")));
}

Value default_of(const OptimizerKey& row, Kind kind) {
  if (kind == Kind::boolean) return row.default_value != 0;
  if (kind == Kind::integer) return static_cast<Index>(row.default_value);
  return row.default_value;
}

/// Marks the keys of [optimizer] that not every kind has, from optimizer_keys.
void mark_uses(std::vector<Key>& table) {
  for (Key& key : table) {
    if (key.table() != "optimizer") continue;
    for (const OptimizerKey& row : optimizer_keys) {
      if (row.name != key.name()) continue;
      key.depends_on = "optimizer.kind";
      key.uses.push_back({std::string(name_of(row.kind)), default_of(row, key.kind)});
    }
  }
}

/// The settings of update rules, and decay.
void add_rule_settings(std::vector<Key>& table) {
  constexpr auto t = &Config::optimizer;
  table.push_back(real("optimizer.beta1", t, &Optimizer::beta1, below(0, 1), "",
                       "Decay of the first moment; \"lion\": of the momentum in the update."));
  table.push_back(real("optimizer.beta2", t, &Optimizer::beta2, below(0, 1), "",
                       "Decay of the second moment; \"lion\": of the kept momentum."));
  table.push_back(
      real("optimizer.eps", t, &Optimizer::eps, above(0, 1), "",
           "Added to the root of the second moment; \"adafactor\": the smallest such root."));
  table.push_back(real("optimizer.beta3", t, &Optimizer::beta3, below(0, 1), "",
                       "Decay of the slow moment, after optimizer.slow_warmup."));
  table.push_back(real("optimizer.alpha", t, &Optimizer::alpha, from(0, 1000), "",
                       "Factor on the slow moment, after optimizer.slow_warmup."));
  table.push_back(
      integer("optimizer.slow_warmup", t, &Optimizer::slow_warmup, from(0, max_count), "steps",
              "Steps over which beta3 rises from beta1 and alpha from 0 (docs/optimizers.md); 0: "
              "train.steps."));
  table.push_back(real("optimizer.momentum", t, &Optimizer::momentum, below(0, 1), "",
                       "Decay of the momentum."));
  table.push_back(boolean("optimizer.nesterov", t, &Optimizer::nesterov,
                          "Nesterov's momentum: the update looks a step ahead."));
  Key polynomials =
      choice("optimizer.polynomials", t, &Optimizer::polynomials, polynomial_sets,
             "Of the five steps that orthogonalize a matrix. " + meanings(polynomial_sets));
  polynomials.depends_on = "optimizer.kind";
  polynomials.uses = {{"muon"}, {"normuon"}};
  table.push_back(std::move(polynomials));
  table.push_back(real("optimizer.weight_decay", t, &Optimizer::weight_decay, from(0, 1000), "",
                       "Decoupled weight decay of weights with two dimensions."));
  table.push_back(boolean("optimizer.cautious_decay", t, &Optimizer::cautious_decay,
                          "Decay only the weights that the update does not move away from 0."));
}

void add_optimizer(std::vector<Key>& table) {
  constexpr auto t = &Config::optimizer;
  table.push_back(choice("optimizer.kind", t, &Optimizer::kind, optimizers,
                         "The update rule (docs/optimizers.md)."));
  table.push_back(real("optimizer.lr", t, &Optimizer::lr, from(0, 1000), "",
                       "Highest learning rate, reached after the warm-up."));
  table.push_back(real("optimizer.min_lr", t, &Optimizer::min_lr, from(0, 1000), "",
                       "Learning rate towards which a schedule falls, and which it would reach one "
                       "step after the last."));
  table.push_back(integer("optimizer.warmup", t, &Optimizer::warmup, from(0, max_count), "steps",
                          "Steps over which the learning rate rises to optimizer.lr."));
  table.push_back(choice("optimizer.schedule", t, &Optimizer::schedule,
                         {{"cosine", Schedule::cosine},
                          {"linear", Schedule::linear},
                          {"wsd", Schedule::wsd},
                          {"constant", Schedule::constant}},
                         "How the learning rate falls after the warm-up, until train.steps. "
                         "\"wsd\" (warm-up, stable, decay): it stays, then falls on a line."));
  Key decay = integer("optimizer.decay", t, &Optimizer::decay, from(0, max_count), "steps",
                      "The last steps of the run, over which the learning rate falls.");
  decay.depends_on = "optimizer.schedule";
  decay.uses.push_back({"wsd"});
  table.push_back(std::move(decay));
  add_rule_settings(table);
  table.push_back(real("optimizer.clip", t, &Optimizer::clip, from(0, 1000000), "",
                       "Gradients are scaled down to at most this global L2 norm; 0: off."));
  table.push_back(same_bits(real("optimizer.loss_scale", t, &Optimizer::loss_scale, from(1, 0x1p24),
                                 "", "fp16: initial loss scale; a power of two.")));
  table.push_back(integer("optimizer.loss_scale_window", t, &Optimizer::loss_scale_window,
                          from(1, max_count), "steps",
                          "fp16: steps without overflow after which the loss scale doubles."));
  table.push_back(same_bits(
      integer("optimizer.max_skipped", t, &Optimizer::max_skipped, from(1, max_count), "steps",
              "Consecutive skipped steps after which the run ends (exit code 5).")));
  table.push_back(real("optimizer.skip_above", t, &Optimizer::skip_above, from(0, 1000000), "",
                       "Skip a step whose gradient norm is above this multiple, more than 1, of "
                       "the median norm of recent applied steps; 0: off (docs/optimizers.md)."));
  table.push_back(integer("optimizer.skip_window", t, &Optimizer::skip_window, from(2, 10000),
                          "steps",
                          "Applied steps over which optimizer.skip_above takes the median. No step "
                          "is skipped before there are as many."));
  table.push_back(real("optimizer.ema", t, &Optimizer::ema, below(0, 1), "",
                       "Decay of a moving average of the weights, which kzero convert --ema "
                       "exports; 0: none. It takes 4 bytes per parameter."));
}

void add_data(std::vector<Key>& table) {
  constexpr auto t = &Config::data;
  table.push_back(
      texts("data.files", t, &Data::files, "Training data: paths, or patterns with * and ?."));
  table.push_back(choice("data.format", t, &Data::format, data_formats, meanings(data_formats)));
  Key token_bytes = integer("data.token_bytes", t, &Data::token_bytes, from(2, 4), "bytes",
                            "Bytes of a token, 2 or 4, unsigned and little-endian.");
  token_bytes.depends_on = "data.format";
  token_bytes.uses.push_back({"raw"});
  table.push_back(std::move(token_bytes));
  table.push_back(integer("data.end_token", t, &Data::end_token, from(-1, max_count), "",
                          "Token that ends a document in a stream: attention and positions begin "
                          "anew after it; -1: none."));
  table.push_back(choice("data.order", t, &Data::order,
                         {{"shuffled", DataOrder::shuffled}, {"sequential", DataOrder::sequential}},
                         "Order in which an epoch visits the sequences, or packs the documents."));
  table.push_back(integer("data.goldfish_k", t, &Data::goldfish_k, from(0, max_count), "",
                          "Leaves one training target in so many, at least 2, out of the loss, "
                          "always the same ones for the same text (docs/data.md); 0: none."));
  table.push_back(integer("data.goldfish_h", t, &Data::goldfish_h, from(1, max_count), "tokens",
                          "Tokens before a target whose hash decides for data.goldfish_k."));
  table.push_back(texts("data.validation_files", t, &Data::validation_files,
                        "Validation data: paths, or patterns with * and ?."));
  table.push_back(real("data.validation_fraction", t, &Data::validation_fraction, from(0, 0.5), "",
                       "Fraction of data.files, or of each source of data.blend, that is kept for "
                       "validation, from the end."));
}

void add_checkpoint(std::vector<Key>& table) {
  constexpr auto t = &Config::checkpoint;
  table.push_back(text("checkpoint.folder", t, &Checkpoint::folder,
                       "Folder of the checkpoints; empty: no checkpoints are written."));
  table.push_back(
      integer("checkpoint.every", t, &Checkpoint::every, from(0, max_count), "steps",
              "Steps from one checkpoint to the next; 0: only at the end and when stopped."));
  table.push_back(integer("checkpoint.keep", t, &Checkpoint::keep, from(0, max_count),
                          "checkpoints", "Newest complete checkpoints to keep; 0: all."));
  table.push_back(integer("checkpoint.keep_every", t, &Checkpoint::keep_every, from(0, max_count),
                          "steps",
                          "Also keep the first checkpoint at or after each multiple of so many "
                          "steps, for averages; 0: none."));
  table.push_back(integer("checkpoint.ranks_per_file", t, &Checkpoint::ranks_per_file,
                          from(1, max_count), "ranks",
                          "Consecutive ranks that write one file collectively (MPI-IO)."));
  table.push_back(boolean("checkpoint.asynchronous", t, &Checkpoint::asynchronous,
                          "Copy the state and let a thread write it while training continues."));
  table.push_back(boolean("checkpoint.resume", t, &Checkpoint::resume,
                          "Resume from the newest complete checkpoint. false: start from the "
                          "beginning; the folder must not contain checkpoints."));
  table.push_back(
      boolean("checkpoint.strict", t, &Checkpoint::strict,
              "Stop if the newest checkpoint is damaged, instead of using the one before it."));
  table.push_back(
      boolean("checkpoint.allow_new_data", t, &Checkpoint::allow_new_data,
              "Resume from a checkpoint that was trained on other data or in another order."));
  table.push_back(boolean("checkpoint.reset_optimizer", t, &Checkpoint::reset_optimizer,
                          "Resume from a checkpoint of another optimizer.kind; the optimizer state "
                          "starts from zero. The same kind keeps its state."));
}

/// Keys on when and how a run ends, and on ranks that hold it up.
void add_run_ends(std::vector<Key>& table) {
  constexpr auto t = &Config::run;
  table.push_back(duration("run.wall_limit", t, &Run::wall_limit, from(0, year),
                           "Time limit of the job, from the start of the program; 0: none. "
                           "SLURM_JOB_END_TIME or KZERO_JOB_END_TIME counts if it is earlier."));
  table.push_back(duration("run.stop_margin", t, &Run::stop_margin, from(0, year),
                           "Time before the limit at which to stop with a checkpoint."));
  table.push_back(duration("run.watchdog", t, &Run::watchdog, from(0, year),
                           "Longest wait of a rank in one collective; then the run ends and names "
                           "the missing ranks. 0: for ever."));
  table.push_back(
      duration("run.heartbeat", t, &Run::heartbeat, from(0, year),
               "The run ends after this time without a sign of life from a node; 0: never."));
  table.push_back(real("run.slow_node_share", t, &Run::slow_node_share, from(0, 1), "",
                       "The run names a node (on a single node, a rank) for which the others wait "
                       "longer than this share of the time; 0: off."));
  table.push_back(text("run.stop_file", t, &Run::stop_file,
                       "The run stops with a checkpoint once this file exists; empty: none."));
  table.push_back(text(
      "run.end_file", t, &Run::end_file,
      "File with one line of JSON on how the run ended; empty: end.json in checkpoint.folder."));
  table.push_back(integer("run.max_steps", t, &Run::max_steps, from(0, max_count), "steps",
                          "Steps after which this job stops with a checkpoint; 0: no limit."));
}

void add_run(std::vector<Key>& table) {
  constexpr auto t = &Config::run;
  table.push_back(integer("run.log_every", t, &Run::log_every, from(1, max_count), "steps",
                          "Steps between lines of output."));
  table.push_back(choice("run.progress", t, &Run::progress,
                         {{"auto", ProgressStyle::automatic},
                          {"live", ProgressStyle::live},
                          {"plain", ProgressStyle::plain}},
                         "\"live\" redraws one line in place; \"plain\": lines only; \"auto\": "
                         "\"live\" on a terminal, but not through a launcher."));
  table.push_back(choice("run.communicator", t, &Run::communicator, communicators,
                         "Library for collectives; \"auto\": \"nccl\" in device builds that have "
                         "it, if no ranks share a device; otherwise \"mpi\"."));
  table.push_back(text("run.metrics", t, &Run::metrics,
                       "File for the metrics, one JSON object per step; empty: none."));
  table.push_back(text("run.profile", t, &Run::profile,
                       "File for a time line of run.profile_steps on all ranks, in Chrome's trace "
                       "format; empty: none."));
  table.push_back(text("run.profile_steps", t, &Run::profile_steps,
                       "First and last step of the time line, from 0."));
  table.push_back(size("run.profile_buffer", t, &Run::profile_buffer, from(65536, 0x1p40),
                       "Memory per rank for the time line, 128 bytes per span."));
  table.push_back(
      integer("run.threads", t, &Run::threads, from(0, 10000), "threads",
              "Threads per rank; 0: OMP_NUM_THREADS, else the node's cores divided by its ranks."));
  table.push_back(
      choice("run.gemm", t, &Run::gemm, gemm_backends,
             "GEMM back end: \"onednn\" and \"blas\" on hosts, \"cublaslt\" in CUDA "
             "builds, \"hipblaslt\" in HIP builds; \"auto\": the first of these that "
             "the build has; \"reference\": for tests and other devices. With \"blas\", "
             "bits may depend on run.threads."));
  table.push_back(text("run.algorithms", t, &Run::algorithms,
                       "File with the algorithms of cuBLASLt that `kzero check --algorithms` "
                       "measured to be the fastest on these GPUs; empty: the library chooses."));
  table.push_back(choice("run.attention", t, &Run::attention, attention_kinds,
                         "Attention of 16-bit runs: \"cudnn\" in CUDA builds that have it, or "
                         "kzero's own kernels; \"auto\": \"cudnn\" if it supports the shape."));
  table.push_back(boolean(
      "run.deterministic", t, &Run::deterministic,
      "Every sum has a fixed order. false: cuDNN's attention may add gradients in any order, "
      "which is faster and takes less memory, and no two runs have the same bits. Only in "
      "CUDA builds with cuDNN."));
  table.push_back(
      real("run.peak_tflops", t, &Run::peak_tflops, from(0, 1000000), "TFLOP/s",
           "Peak speed of a rank, for the utilization (MFU); 0: measured at the start."));
}

/// Keys of [run] that look for nodes that compute wrongly.
void add_trust(std::vector<Key>& table) {
  constexpr auto t = &Config::run;
  table.push_back(
      choice("run.replay", t, &Run::replay,
             {{"off", Replay::off}, {"note", Replay::note}, {"check", Replay::check}},
             "Compare steps that a restart repeats with run.metrics. \"note\" prints the first "
             "difference; \"check\" stops the run there (docs/verifying.md)."));
  table.push_back(
      integer("run.verify_every", t, &Run::verify_every, from(0, max_count), "steps",
              "Steps from one verified step to the next; 0: never. Its micro-batches are computed "
              "twice, on different ranks; a difference stops the run (docs/verifying.md)."));
}

/// Adds keys that change no bits. For the data and run.gemm, a restart compares more than
/// the key (run::Provenance).
void add_same_bits(std::vector<Key>& table, void (*add)(std::vector<Key>&)) {
  std::vector<Key> added;
  add(added);
  for (Key& key : added) table.push_back(same_bits(std::move(key)));
}

}  // namespace

const std::vector<Key>& keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> table;
    add_model_keys(table);
    add_lora(table);
    add_preference_keys(table);
    add_distill_keys(table);
    add_grid(table);
    add_zero(table);
    add_same_bits(table, add_recompute);
    add_train(table);
    add_optimizer(table);
    add_same_bits(table, add_data);
    add_same_bits(table, add_checkpoint);
    add_same_bits(table, add_run_ends);
    add_same_bits(table, add_run);
    add_same_bits(table, add_trust);
    mark_uses(table);
    return table;
  }();
  return all;
}

}  // namespace kzero::deck

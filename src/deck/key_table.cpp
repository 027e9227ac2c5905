#include "deck/key_builders.hpp"

namespace kzero::deck {

namespace {

void add_grid(std::vector<Key>& table) {
  constexpr auto t = &Config::grid;
  table.push_back(integer("grid.data", t, &Grid::data, from(0, 1000000), "ranks",
                          "Data-parallel axis of the process grid; 0: all ranks that grid.tensor "
                          "leaves."));
  table.push_back(
      integer("grid.tensor", t, &Grid::tensor, from(1, 10000), "ranks",
              "Tensor-parallel axis of the process grid: ranks that split each layer's heads, "
              "columns and vocabulary; neighbours in rank order. Must divide model.heads."));
}

void add_zero(std::vector<Key>& table) {
  constexpr auto t = &Config::zero;
  table.push_back(
      integer("zero.stage", t, &Zero::stage, from(0, 3), "",
              "State partitioned over the data-parallel ranks: 1 the optimizer state, 2 "
              "also gradients, 3 also parameters; 0 nothing."));
  table.push_back(
      size("zero.bucket", t, &Zero::bucket, from(256, 0x1p40),
           "Size of the communication buffer, through which gradients are reduced in chunks."));
  table.push_back(integer("zero.prefetch_units", t, &Zero::prefetch_units, from(0, 10000), "units",
                          "Units (blocks) whose parameters are gathered ahead of the one in use in "
                          "stage 3."));
  table.push_back(
      choice("zero.accumulate", t, &Zero::accumulate,
             {{"auto", Accumulate::automatic},
              {"local", Accumulate::local},
              {"reduced", Accumulate::reduced}},
             "Gradients of several micro-batches: \"auto\" and \"reduced\" reduce each and "
             "accumulate in fp32, in an order that does not depend on the number of ranks; "
             "\"local\" adds them before they are reduced (stages 0 and 1, or one data-parallel "
             "rank), with fewer messages and other bits on each number of ranks."));
  table.push_back(
      choice("zero.offload", t, &Zero::offload, {{"none", Offload::none}, {"host", Offload::host}},
             "CPU offload of the optimizer: state and update stay with the model, or are on "
             "the host; in builds without a device both are the same."));
  table.push_back(choice("zero.overlap", t, &Zero::overlap,
                         {{"auto", Overlap::automatic}, {"on", Overlap::on}, {"off", Overlap::off}},
                         "Gathers and reductions move data while the rank computes. \"auto\" is "
                         "on with NCCL, where that takes no core from the rank, and where "
                         "data-parallel ranks are on several nodes; over MPI on one node it is "
                         "off."));
  table.push_back(
      choice("zero.reduction", t, &Zero::reduction,
             {{"ordered", ReductionOrder::ranks}, {"library", ReductionOrder::library}},
             "Sums of gradients over ranks: \"ordered\" in rank order and fp32, the same "
             "bits whatever the library; \"library\" as NCCL adds them, with other "
             "rounding for each number of ranks and machine."));
}

void add_recompute(std::vector<Key>& table) {
  constexpr auto t = &Config::recompute;
  table.push_back(choice("recompute.mode", t, &Recompute::mode, recompute_modes,
                         "What backward recomputes instead of keeping it: \"layernorm_gelu\" the "
                         "outputs of LayerNorm and GELU; \"full\" all of a block but its input."));
  table.push_back(boolean("recompute.partition", t, &Recompute::partition,
                          "Each of the grid.tensor ranks keeps its part of a block's input with "
                          "recompute.mode = \"full\", and gathers it before backward (P_a)."));
  table.push_back(choice("recompute.offload", t, &Recompute::offload,
                         {{"none", Offload::none}, {"host", Offload::host}},
                         "Where the inputs of blocks wait for backward with recompute.mode = "
                         "\"full\": with the model, or in host memory, to which builds without a "
                         "device copy them as well."));
}

void add_train(std::vector<Key>& table) {
  constexpr auto t = &Config::train;
  table.push_back(integer("train.steps", t, &Train::steps, from(1, most), "steps",
                          "Optimizer steps of the whole training, over all its jobs."));
  table.push_back(integer("train.global_batch", t, &Train::global_batch, from(1, 1000000),
                          "sequences", "Sequences of one step, over all ranks."));
  table.push_back(integer("train.micro_batch", t, &Train::micro_batch, from(0, 1000000),
                          "sequences",
                          "Sequences that a rank computes at once; 0: all of its part of "
                          "train.global_batch."));
  table.push_back(
      choice("train.precision", t, &Train::precision,
             {{"fp32", Dtype::fp32}, {"bf16", Dtype::bf16}, {"fp16", Dtype::fp16}},
             "Storage of weights, activations and gradients; master weights and moments "
             "are fp32 always."));
  table.push_back(integer("train.seed", t, &Train::seed, from(0, largest_exact), "",
                          "Key of the initial weights and of the order of the data."));
  table.push_back(integer("train.validate_every", t, &Train::validate_every, from(0, most), "steps",
                          "Steps from one validation to the next; 0: never."));
  table.push_back(integer("train.validation_batches", t, &Train::validation_batches, from(1, most),
                          "batches", "Global batches that one validation reads."));
}

/// Marks the keys of [optimizer] that not every kind has, from optimizer_keys.
void mark_uses(std::vector<Key>& table) {
  for (Key& key : table) {
    if (key.table() != "optimizer") continue;
    for (const OptimizerKey& row : optimizer_keys) {
      if (row.name != key.name()) continue;
      key.depends_on = "optimizer.kind";
      const bool is_switch = key.kind == Kind::boolean;
      key.uses.push_back(
          {std::string(name_of(row.kind)), is_switch ? Value(row.usual != 0) : Value(row.usual)});
    }
  }
}

void add_optimizer(std::vector<Key>& table) {
  constexpr auto t = &Config::optimizer;
  table.push_back(choice("optimizer.kind", t, &Optimizer::kind, optimizers,
                         "The update rule (docs/optimizers.md)."));
  table.push_back(real("optimizer.lr", t, &Optimizer::lr, from(0, 1000), "",
                       "Highest learning rate, reached after the warm-up."));
  table.push_back(real("optimizer.min_lr", t, &Optimizer::min_lr, from(0, 1000), "",
                       "Learning rate at the end of a falling schedule."));
  table.push_back(integer("optimizer.warmup", t, &Optimizer::warmup, from(0, most), "steps",
                          "Steps over which the learning rate rises to optimizer.lr."));
  table.push_back(choice("optimizer.schedule", t, &Optimizer::schedule,
                         {{"cosine", Schedule::cosine},
                          {"linear", Schedule::linear},
                          {"constant", Schedule::constant}},
                         "How the learning rate falls after the warm-up, until train.steps."));
  table.push_back(
      real("optimizer.beta1", t, &Optimizer::beta1, below(0, 1), "",
           "Decay of the first moment; in \"lion\" of the momentum in an update's direction."));
  table.push_back(real("optimizer.beta2", t, &Optimizer::beta2, below(0, 1), "",
                       "Decay of the second moment; in \"lion\" of the momentum that is kept."));
  table.push_back(
      real("optimizer.eps", t, &Optimizer::eps, above(0, 1), "",
           "Added to the root of the second moment; in \"adafactor\" the least such root."));
  table.push_back(real("optimizer.momentum", t, &Optimizer::momentum, below(0, 1), "",
                       "Decay of the momentum."));
  table.push_back(boolean("optimizer.nesterov", t, &Optimizer::nesterov,
                          "Nesterov's momentum: the update looks a step ahead."));
  table.push_back(real("optimizer.weight_decay", t, &Optimizer::weight_decay, from(0, 1000), "",
                       "Decoupled weight decay, of weights with two dimensions only."));
  table.push_back(
      real("optimizer.clip", t, &Optimizer::clip, from(0, 1000000), "",
           "Gradients are scaled down to at most this global L2 norm; 0: no clipping."));
  table.push_back(real("optimizer.loss_scale", t, &Optimizer::loss_scale, from(1, 0x1p24), "",
                       "First factor on the loss in fp16; a power of two."));
  table.push_back(integer("optimizer.loss_scale_window", t, &Optimizer::loss_scale_window,
                          from(1, most), "steps",
                          "Steps without overflow after which the factor on the loss doubles in "
                          "fp16."));
  table.push_back(
      integer("optimizer.max_skipped", t, &Optimizer::max_skipped, from(1, most), "steps",
              "Consecutive steps with gradients that are not finite that end the run as "
              "diverged."));
}

void add_data(std::vector<Key>& table) {
  constexpr auto t = &Config::data;
  table.push_back(texts("data.files", t, &Data::files,
                        "Training data: paths, or patterns in which * and ? are wildcards; regular "
                        "files all. Several sources with weights: [[data.blend]]."));
  table.push_back(
      choice("data.format", t, &Data::format, data_formats,
             "\"bytes\": any file but those of known token formats, a token is a byte. "
             "\"llmc\": 256 int32 of header, then 16-bit or 32-bit tokens, as the "
             "header says; files of both kinds may be mixed. \"megatron\": the .bin files of "
             "Megatron-LM's datasets, each with its .idx beside it. \"raw\": tokens "
             "of data.token_bytes and nothing else."));
  Key token_bytes = integer("data.token_bytes", t, &Data::token_bytes, from(2, 4), "bytes",
                            "Bytes of a token, 2 or 4, unsigned and little-endian.");
  token_bytes.depends_on = "data.format";
  token_bytes.uses.push_back({"raw"});
  table.push_back(std::move(token_bytes));
  table.push_back(choice("data.order", t, &Data::order,
                         {{"shuffled", DataOrder::shuffled}, {"sequential", DataOrder::sequential}},
                         "Order in which an epoch visits the sequences."));
  table.push_back(texts("data.validation_files", t, &Data::validation_files,
                        "Validation data: paths, or patterns with * and ?."));
  table.push_back(
      real("data.validation_fraction", t, &Data::validation_fraction, from(0, 0.5), "",
           "Part of the tokens of data.files, or of each source of data.blend, at their "
           "end, that is kept for validation."));
}

void add_checkpoint(std::vector<Key>& table) {
  constexpr auto t = &Config::checkpoint;
  table.push_back(text("checkpoint.folder", t, &Checkpoint::folder,
                       "Folder of the checkpoints; empty: none are written."));
  table.push_back(
      integer("checkpoint.every", t, &Checkpoint::every, from(0, most), "steps",
              "Steps from one checkpoint to the next; 0: only at the end and when stopped."));
  table.push_back(integer("checkpoint.keep", t, &Checkpoint::keep, from(0, most), "checkpoints",
                          "Newest complete checkpoints to keep; 0: all."));
  table.push_back(integer("checkpoint.ranks_per_file", t, &Checkpoint::ranks_per_file,
                          from(1, most), "ranks",
                          "Consecutive ranks that write one file collectively (MPI-IO)."));
  table.push_back(boolean("checkpoint.asynchronous", t, &Checkpoint::asynchronous,
                          "Copy the state and let a thread write it while training continues."));
  table.push_back(
      boolean("checkpoint.resume", t, &Checkpoint::resume,
              "Continue from the newest complete checkpoint in checkpoint.folder; false: "
              "start afresh, in a folder without checkpoints."));
  table.push_back(boolean("checkpoint.strict", t, &Checkpoint::strict,
                          "Stop if the newest checkpoint is damaged, instead of taking the one "
                          "before."));
  table.push_back(
      boolean("checkpoint.allow_new_data", t, &Checkpoint::allow_new_data,
              "Continue from a checkpoint of a run with other training data, or with the "
              "same in another order."));
  table.push_back(
      boolean("checkpoint.reset_optimizer", t, &Checkpoint::reset_optimizer,
              "Continue from a checkpoint of another optimizer.kind: from its weights, at its step "
              "and sample, with the optimizer's other state from zero. One of the same kind goes "
              "on with its state."));
}

/// Keys on when and how a run ends, and on ranks that hold it up.
void add_run_ends(std::vector<Key>& table) {
  constexpr auto t = &Config::run;
  table.push_back(duration(
      "run.wall_limit", t, &Run::wall_limit, from(0, year),
      "Time limit of the job, from the start of the program; 0: none of its own. "
      "The end of the job (SLURM_JOB_END_TIME, KZERO_JOB_END_TIME) counts too; the earlier "
      "wins."));
  table.push_back(duration("run.stop_margin", t, &Run::stop_margin, from(0, year),
                           "Time before the limit at which to stop with a checkpoint."));
  table.push_back(
      duration("run.watchdog", t, &Run::watchdog, from(0, year),
               "Time that a rank waits for others in one collective before the run ends and names "
               "the ranks it waited for; 0: for ever."));
  table.push_back(
      duration("run.heartbeat", t, &Run::heartbeat, from(0, year),
               "Time without a sign of life from another node after which the run names it and "
               "ends; 0: for ever. Signs of life do not wait for the end of a step."));
  table.push_back(real("run.slow_node_share", t, &Run::slow_node_share, from(0, 1), "",
                       "The run names a node for which the other nodes wait for more than this "
                       "share of the steps' time; on a single node, a rank. 0: off."));
  table.push_back(text("run.stop_file", t, &Run::stop_file,
                       "The run stops with a checkpoint once this file exists; empty: none."));
  table.push_back(text("run.end_file", t, &Run::end_file,
                       "File that tells job scripts how the run ended, as one line of JSON; empty: "
                       "end.json in checkpoint.folder."));
  table.push_back(
      integer("run.max_steps", t, &Run::max_steps, from(0, most), "steps",
              "Steps of this job after which it stops with a checkpoint; 0: no limit."));
}

void add_run(std::vector<Key>& table) {
  constexpr auto t = &Config::run;
  table.push_back(integer("run.log_every", t, &Run::log_every, from(1, most), "steps",
                          "Steps between lines of output."));
  table.push_back(
      choice("run.progress", t, &Run::progress,
             {{"auto", ProgressStyle::automatic},
              {"live", ProgressStyle::live},
              {"plain", ProgressStyle::plain}},
             "\"live\": one line below the others is redrawn in place; \"plain\": lines "
             "only; \"auto\": \"live\" if rank 0 or its mpiexec prints to a "
             "terminal."));
  table.push_back(
      choice("run.communicator", t, &Run::communicator, communicators,
             "Communicator of the collectives on arrays; \"auto\": \"nccl\" in device builds "
             "that have it, else \"mpi\"."));
  table.push_back(
      text("run.metrics", t, &Run::metrics, "File for one JSON object a step; empty: none."));
  table.push_back(text("run.profile", t, &Run::profile,
                       "File for a time line of all ranks, in Chrome's trace format: kernels, "
                       "products, messages and waits of run.profile_steps; empty: none."));
  table.push_back(text("run.profile_steps", t, &Run::profile_steps,
                       "First and last step of the time line, as in the metrics (from 0)."));
  table.push_back(size("run.profile_buffer", t, &Run::profile_buffer, from(65536, 0x1p40),
                       "Memory of a rank for the time line, 128 bytes a span; what does not fit is "
                       "left out, and the run says how much."));
  table.push_back(
      integer("run.threads", t, &Run::threads, from(0, 10000), "threads",
              "Threads per rank; 0: OMP_NUM_THREADS, else the node's cores divided by its ranks."));
  table.push_back(choice("run.gemm", t, &Run::gemm, gemm_backends,
                         "GEMM back end: \"onednn\" and \"blas\" on hosts, "
                         "\"cublaslt\" in builds for CUDA; \"auto\": \"onednn\" or "
                         "\"cublaslt\"; \"reference\" is for tests and for other devices."));
  table.push_back(choice("run.attention", t, &Run::attention, attention_kinds,
                         "Attention of 16-bit runs: \"cudnn\" in builds for CUDA that have it, or "
                         "kzero's own kernels; \"auto\": \"cudnn\" where it can do the shape."));
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
             "Steps that a restart repeats are compared with the losses and norms in "
             "run.metrics: \"note\" prints the first difference, \"check\" stops the run there "
             "(docs/running.md)."));
  table.push_back(integer("run.verify_every", t, &Run::verify_every, from(0, most), "steps",
                          "Steps from one whose micro-batches are computed twice, on different "
                          "ranks, to the next; a difference stops the run and names the node "
                          "(docs/running.md); 0: never."));
}

}  // namespace

const std::vector<Key>& keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> table;
    add_model_keys(table);
    add_grid(table);
    add_zero(table);
    add_recompute(table);
    add_train(table);
    add_optimizer(table);
    add_data(table);
    add_checkpoint(table);
    add_run_ends(table);
    add_run(table);
    add_trust(table);
    mark_uses(table);
    return table;
  }();
  return all;
}

}  // namespace kzero::deck

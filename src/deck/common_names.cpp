#include "deck/schema.hpp"

#include <algorithm>
#include <string>

namespace kzero::deck {

namespace {

struct Names {
  std::string_view path;
  std::string_view elsewhere;  // separated by blanks
};

// In nanoGPT and Hugging Face, batch_size is the micro-batch of one device.
constexpr Names common_names[] = {
    {"model.layers", "n_layer n_layers num_layers num_hidden_layers depth"},
    {"model.hidden", "n_embd d_model hidden_size"},
    {"model.heads", "n_head n_heads num_heads num_attention_heads"},
    {"model.sequence",
     "block_size n_ctx n_positions seq_len seq_length sequence_length context_length max_seq_len "
     "max_position_embeddings"},
    {"model.vocab", "vocab_size padded_vocab_size"},
    {"model.feed_forward", "n_inner d_ff ffn_hidden_size intermediate_size"},
    {"model.tied_embeddings", "tie_word_embeddings untie_embeddings_and_output_weights"},
    {"model.norm_eps",
     "layer_norm_eps layer_norm_epsilon layernorm_epsilon norm_epsilon rms_norm_eps"},
    {"model.kv_heads", "n_kv_heads num_key_value_heads num_query_groups"},
    {"model.head_dim", "kv_channels head_size"},
    {"model.rope_theta", "rotary_base rope_base"},
    {"model.qkv_bias", "attention_bias add_qkv_bias"},
    {"model.qk_norm", "qk_layernorm"},
    {"model.rope_original_sequence", "original_max_position_embeddings"},
    {"model.dropout", "resid_pdrop residual_dropout hidden_dropout resid_dropout"},
    {"model.attention_dropout", "attn_pdrop attn_dropout"},
    {"model.init_std", "initializer_range init_method_std"},
    {"model.initial", "init_from finetune_from"},
    {"grid.tensor", "tensor_model_parallel_size tensor_parallel tp_size"},
    {"grid.data", "data_parallel_size dp_size"},
    {"zero.stage", "zero_stage zero_optimization use_distributed_optimizer"},
    {"zero.bucket", "reduce_bucket_size allgather_bucket_size"},
    {"zero.prefetch_units", "stage3_prefetch_bucket_size"},
    {"zero.overlap", "overlap_comm overlap_grad_reduce"},
    {"zero.offload", "offload_optimizer cpu_offload"},
    {"recompute.mode",
     "recompute_granularity recompute_activations activation_checkpointing gradient_checkpointing"},
    {"recompute.partition", "partition_activations"},
    {"recompute.offload", "cpu_checkpointing"},
    {"train.steps", "max_iters train_iters num_steps total_steps max_train_steps lr_decay_iters"},
    {"train.micro_batch",
     "batch_size micro_batch_size per_device_train_batch_size train_micro_batch_size_per_gpu"},
    {"train.global_batch", "global_batch_size train_batch_size gradient_accumulation_steps"},
    {"train.precision", "dtype bf16 fp16 mixed_precision torch_dtype"},
    {"train.z_loss", "z_loss_multiplier z_loss_weight z_loss_coefficient softmax_auxiliary_loss"},
    {"train.seed", "random_seed"},
    {"train.validate_every", "eval_interval eval_steps val_interval"},
    {"train.validation_batches", "eval_iters"},
    {"optimizer.kind", "optimizer_type optim"},
    {"optimizer.lr", "learning_rate max_lr"},
    {"optimizer.warmup", "warmup_iters warmup_steps num_warmup_steps lr_warmup_iters"},
    {"optimizer.schedule", "decay_lr lr_scheduler lr_scheduler_type lr_decay_style"},
    {"optimizer.beta1", "adam_beta1"},
    {"optimizer.beta2", "adam_beta2"},
    {"optimizer.eps", "adam_eps adam_epsilon"},
    {"optimizer.clip", "grad_clip clip_grad max_grad_norm gradient_clipping"},
    {"optimizer.loss_scale", "initial_loss_scale initial_scale_power"},
    {"data.files", "dataset data_dir data_path train_files train_data"},
    {"data.end_token", "eos_token_id eod_token reset_attention_mask reset_position_ids"},
    {"data.validation_files", "val_files val_data"},
    {"data.validation_fraction", "val_split"},
    {"checkpoint.folder", "out_dir output_dir save_dir"},
    {"checkpoint.every", "save_steps save_interval checkpoint_interval"},
    {"checkpoint.keep", "save_total_limit"},
    {"checkpoint.keep_every", "save_retain_interval"},
    {"checkpoint.asynchronous", "async_save"},
    {"checkpoint.resume", "resume_from_checkpoint"},
    {"run.log_every", "log_interval logging_steps steps_per_print"},
    {"run.wall_limit", "time_limit exit_duration_in_mins"},
    {"run.max_steps", "exit_interval"},
    {"run.threads", "num_threads"},
};

bool holds(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

}  // namespace

std::string_view path_of_common_name(std::string_view name) {
  std::string plain(name);
  for (char& c : plain) {
    if (c == '-') c = '_';
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  for (const Names& names : common_names) {
    if (holds(names.elsewhere, plain)) return names.path;
  }
  return "";
}

}  // namespace kzero::deck

// Averages of checkpoints: sums of their weights in fp64, in the order in which they are named.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "checkpoint/folder/search.hpp"
#include "convert/export.hpp"
#include "deck/config.hpp"

namespace kzero::convert {

/// Returns the weight of each checkpoint in an average; `steps` are the checkpoints' steps. `rule`
/// is one of these:
/// - "mean": all have the same weight.
/// - "0.5,0.3,0.2": these, used as they are. Their sum may differ from 1 by at most 1e-9, which is
///   less than the rounding of an fp32 number.
/// - "linear", "cosine" or "1-sqrt": the weights with which the average emulates a decay of the
///   learning rate from the first checkpoint to the last (WSM, arXiv 2507.17634, theorem 1). A
///   change of the weights between checkpoints i - 1 and i counts in checkpoints i to k, so the
///   average has it w_i = c_i + ... + c_k times. Hence c_0 = 1 - w_1, c_i = w_i - w_(i+1) and
///   c_k = w_k. w_i is the mean of the decay's factor over the steps of that change.
/// Throws Error(usage) for any other rule, for numbers that are not finite or not as many as
/// checkpoints, and for steps of a decay that do not ascend or are of one checkpoint alone.
std::vector<double> average_weights(const std::string& rule, std::span<const Index> steps);

/// Returns whether two settings mean adapters of the same function and shapes.
bool is_same_lora(const deck::Lora& a, const deck::Lora& b);

/// Throws Error(usage) unless all checkpoints have the model of the last, and its adapters on the
/// same frozen weights or none.
void require_alike(std::span<const checkpoint::Found> parts);

/// The average of the state array `array`: the products of weights and values, rounded to fp64, are
/// added in order in fp64, and the sum is rounded to fp32. Its read() throws Error(files) for
/// values that are not finite. `parts` must outlive the source.
ExportSource averaged_weights(std::span<const checkpoint::Found> parts,
                              const std::vector<double>& weights, const std::string& array);

}  // namespace kzero::convert

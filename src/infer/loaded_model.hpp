// A model in memory on the ranks of a launch, for forward passes only.
#pragma once

#include <memory>
#include <span>

#include "engine/machinery.hpp"
#include "infer/source.hpp"

namespace kzero::infer {

/// The shape of every batch that a loaded model computes.
struct ForwardShape {
  Index batch = 1;     // sequences of a data rank; 1 if they have several chunks
  Index sequence = 1;  // tokens of each, at most the model's own
  Index top = 0;       // of top_losses(); 0: it is not called
};

/// Hides the precision. The functions are collective: every rank of the grid must call them alike.
class ForwardModel {
 public:
  virtual ~ForwardModel() = default;

  virtual const ForwardShape& shape() const = 0;
  /// This rank's place among those that share each sequence, and the chunks of a sequence.
  virtual const model::SequenceRank& part() const = 0;
  virtual const memory::Bytes& planned() const = 0;  // of this rank
  virtual Index parameters() const = 0;              // of the full model

  /// Copies the loss of each target, -log p in fp32, to `losses`. All spans have this rank's rows
  /// of the batch: [batch * sequence / part().size]. They are empty on a data rank without a
  /// batch, which only takes part in the collectives of the data group.
  virtual void token_losses(std::span<const Token> inputs, std::span<const Token> targets,
                            std::span<float> losses) = 0;

  /// As token_losses(). Also copies the `top` most probable tokens of each row that has a target,
  /// most probable first, and ln p of each, to [rows * top]; zeros for other rows.
  virtual void top_losses(std::span<const Token> inputs, std::span<const Token> targets,
                          std::span<float> losses, std::span<Token> tokens,
                          std::span<float> ln_p) = 0;
};

/// Loads the source's model: allocates the memory that was measured before, and reads the weights.
/// Source and machinery must outlive the result. Throws Error(memory) if it does not fit, and
/// Error(files) for weights that cannot be read. Collective over all ranks of the launch;
/// `node_ranks` of them share a node's memory.
std::unique_ptr<ForwardModel> load(const Source& source, const ForwardShape& shape,
                                   engine::Machinery& machinery, Index node_ranks);

}  // namespace kzero::infer

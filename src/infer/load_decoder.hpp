// A decoder with a source's weights.
#pragma once

#include "engine/machinery.hpp"
#include "infer/source.hpp"
#include "model/decoder.hpp"

namespace kzero::infer {

/// The bytes by category that load_decoder needs on this rank.
memory::Bytes load_bytes(const Source& source, const model::DecoderShape& shape,
                         const model::TensorRank& tensor, Index data_ranks);

/// Allocates the memory that load_bytes counts, enters it in the machinery's ledger and reads
/// all weights on every data rank. The machinery must outlive the result. Throws Error(memory) if
/// it does not fit, and Error(files) for weights that cannot be read. Collective over all ranks of
/// the launch; `node_ranks` of them share a node's memory.
std::unique_ptr<model::Decoder> load_decoder(const Source& source, const model::DecoderShape& shape,
                                             engine::Machinery& machinery, Index node_ranks);

}  // namespace kzero::infer

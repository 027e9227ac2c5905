// What the processor that the program runs on adds to the instructions that it was compiled for.
#pragma once

#include <string_view>

namespace kzero {

/// Returns whether this process may multiply tiles of bf16 (Intel AMX): whether the processor has
/// the instructions, Linux permits their registers and oneDNN's limit leaves them. The first call
/// asks Linux for the permission, which is one of all threads; the answer never changes.
bool amx_available();

/// Returns whether a value of oneDNN's variable ONEDNN_MAX_CPU_ISA or DNNL_MAX_CPU_ISA leaves AMX.
/// The kernels heed it too, so that one limit holds for all arithmetic of a run.
bool isa_limit_leaves_amx(std::string_view limit);

}  // namespace kzero

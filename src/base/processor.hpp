// Detects instructions of the running processor beyond those that the program was compiled for.
#pragma once

#include <string_view>

namespace kzero {

/// Returns whether this process may multiply tiles of bf16 (Intel AMX): the processor has the
/// instructions, Linux permits their registers, and oneDNN's limit allows them. The first call
/// requests the permission from Linux, for all threads of the process. The answer never changes.
bool amx_available();

/// Returns whether the processor multiplies pairs of bf16 more slowly than it multiplies their
/// values in fp32. Those of Intel from Sapphire Rapids on do, whose AMX is for such products: an
/// Emerald Rapids reaches 92 GFLOP/s with pairs and 180 in fp32. AMX may be missing on a virtual
/// machine.
bool pairs_are_slow();

/// Returns whether a value of oneDNN's variable ONEDNN_MAX_CPU_ISA or DNNL_MAX_CPU_ISA allows AMX.
/// kzero's kernels obey it too, so that one limit holds for all arithmetic of a run.
bool isa_limit_leaves_amx(std::string_view limit);

}  // namespace kzero

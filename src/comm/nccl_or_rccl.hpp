// The library of collectives of builds for CUDA or HIP: NCCL, or RCCL, which has the same functions
// under the same names. Only RCCL's header has another name.
#pragma once

#ifdef KZERO_HIP
#include <rccl/rccl.h>
#else
#include <nccl.h>
#endif

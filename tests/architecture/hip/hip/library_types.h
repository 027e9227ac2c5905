// In place of HIP's header: the types of matrices that kzero has. Debian's HIP, of ROCm 5.2, lacks
// bf16.
#pragma once

enum hipDataType { HIP_R_32F = 0, HIP_R_16F = 2, HIP_R_16BF = 14 };

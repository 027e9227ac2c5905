// Stand-in: what there is of it is in mma.h.
#pragma once

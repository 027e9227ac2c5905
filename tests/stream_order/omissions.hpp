// Events and fences that a run leaves out, to see whether that is reported: leave_out.py.
#pragma once

namespace kzero::stream_order {

/// Returns whether KZERO_LEFT_OUT, a list separated by spaces, has the call that returns to
/// `caller`, as an address within the program, or the fence of a label. With KZERO_LIST_ORDER
/// writes each of them to standard error the first time.
bool is_left_out(const char* call, const void* caller);
bool is_left_out(const char* fence);

}  // namespace kzero::stream_order

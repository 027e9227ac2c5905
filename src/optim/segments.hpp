// Maps the elements of a rank's part of a matrix to rows and columns of the full matrix, for any
// split.
#pragma once

#include <algorithm>

#include "param/reduced_array.hpp"

namespace kzero::optim {

/// Adjacent elements of one row.
struct Segment {
  Index local = 0;  // offset of the first element in the part
  Index row = 0, column = 0;
  Index count = 0;
};

/// Calls f(segment) for elements [begin, end) of the rank's part of a parameter, in order.
template <class F>
void for_each_segment(const param::ParamSpec& parameter, Index begin, Index end, const F& f) {
  const Index columns = param::columns_of(parameter.shape);
  parameter.split.for_each_run(begin, end - begin, [&](Index local, Index global, Index count) {
    Index row = global / columns, column = global % columns;
    for (Index done = 0; done < count;) {
      const Index here = std::min(count - done, columns - column);
      f(Segment{local + done, row, column, here});
      done += here;
      ++row;
      column = 0;
    }
  });
}

}  // namespace kzero::optim

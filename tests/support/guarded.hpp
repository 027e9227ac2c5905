// A device buffer between guard values. A kernel that writes out of its range fails the test.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "support/device_memory.hpp"
#include "support/same_bits.hpp"

namespace kzero::tests {

template <class T>
class Guarded {
 public:
  /// `count` elements filled with the guard pattern. An element that a kernel does not write is
  /// NaN.
  explicit Guarded(Index count)
      : count_(count),
        storage_(Kokkos::view_alloc(Kokkos::WithoutInitializing, "kzero::tests::guarded"),
                 count + 2 * margin) {
    std::vector<T> pattern(count + 2 * margin);
    fill_pattern(pattern.data(), count + 2 * margin);
    to_device(pattern, storage_.data());
  }

  explicit Guarded(const std::vector<T>& values) : Guarded(static_cast<Index>(values.size())) {
    set(values);
  }

  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  ~Guarded() {
    std::vector<T> pattern(margin);
    fill_pattern(pattern.data(), margin);
    EXPECT_TRUE(same_bits(from_device(storage_.data(), margin), pattern))
        << "written before the buffer";
    EXPECT_TRUE(same_bits(from_device(data() + count_, margin), pattern))
        << "written past the buffer's " << count_ << " elements";
  }

  T* data() const { return storage_.data() + margin; }
  tensor::Vector<T> vector() const { return {data(), static_cast<std::size_t>(count_)}; }
  tensor::Matrix<T> matrix(Index rows, Index columns) const {
    EXPECT_EQ(rows * columns, count_);
    return {data(), static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)};
  }

  void set(const std::vector<T>& values) {
    ASSERT_LE(static_cast<Index>(values.size()), count_);
    to_device(values, data());
  }

  std::vector<T> host() const { return from_device(data(), count_); }

 private:
  static constexpr Index margin = 64;

  // The pattern is a signalling NaN as float and as bf16, and a NaN with a payload as fp16.
  // Arithmetic changes its bits, so even adding a guard value to itself is detected.
  static void fill_pattern(T* data, Index count) {
    const auto bytes = reinterpret_cast<unsigned char*>(data);
    for (std::size_t i = 0; i < count * sizeof(T); ++i) bytes[i] = i % 2 == 0 ? 0xA5 : 0x7F;
  }

  Index count_;
  Kokkos::View<T*, Kokkos::LayoutRight, tensor::Memory> storage_;
};

}  // namespace kzero::tests

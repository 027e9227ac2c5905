// Accesses that are not ordered are reported, and ordered ones are not.
#include <gtest/gtest.h>

#include "runtime/event.hpp"
#include "stream_order/device_memory.hpp"
#include "stream_order/streams.hpp"
#include "tensor/view.hpp"

namespace kzero::stream_order {
namespace {

using runtime::Event;
using runtime::Execution;
using Values = Kokkos::View<float*, runtime::Memory>;

constexpr Index count = 100;

void add(const Execution& stream, const Values& from, const Values& to) {
  Kokkos::parallel_for(
      "kzero::stream_order::add", tensor::Range(stream, 0, count),
      KOKKOS_LAMBDA(Index i) { to(i) += from(i); });
}

class Order : public testing::Test {
 protected:
  static Values values() { return Values("kzero::tests::values", count); }

  bool is_reported() const { return reports() > before_; }
  ~Order() override { Kokkos::fence("kzero::tests::done"); }

  const Execution a = runtime::make_stream(), b = runtime::make_stream();
  const Values x = values(), y = values(), z = values();
  const Kokkos::View<float*, runtime::HostMemory> pinned{"kzero::tests::host_values", count};
  Event event;

 private:
  const int before_ = reports();
};

TEST_F(Order, OfKernelsOnOneStreamIsThatOfLaunches) {
  add(a, x, y);
  add(a, y, x);
  EXPECT_FALSE(is_reported());
}

TEST_F(Order, OfTwoStreamsIsNone) {
  add(a, x, y);
  add(b, y, z);
  EXPECT_TRUE(is_reported());
}

TEST_F(Order, OfReadersDoesNotMatter) {
  add(a, x, y);
  add(b, x, z);
  EXPECT_FALSE(is_reported());
}

TEST_F(Order, IsThatOfAnEvent) {
  add(a, x, y);
  event.order(a, b);
  add(b, y, x);
  EXPECT_FALSE(is_reported());
}

TEST_F(Order, OfAnEventHasNothingThatComesAfterIt) {
  event.record(a);
  add(a, x, y);
  event.wait(b);
  add(b, y, z);
  EXPECT_TRUE(is_reported());
}

TEST_F(Order, OfAnEventIsThatOfItsLastPoint) {
  add(a, x, y);
  event.record(a);
  event.record(b);
  event.wait(b);
  add(b, y, z);
  EXPECT_TRUE(is_reported());
}

TEST_F(Order, OfAnEventHoldsForTheStreamThatWaits) {
  add(a, x, y);
  event.order(a, Execution());
  add(b, y, z);
  EXPECT_TRUE(is_reported());
}

TEST_F(Order, IsThatOfAFence) {
  add(a, x, y);
  a.fence("kzero::tests::written");
  add(b, y, x);
  EXPECT_FALSE(is_reported());
}

TEST_F(Order, OfAFenceIsItsStreamsAlone) {
  add(a, x, y);
  b.fence("kzero::tests::written");
  add(b, y, z);
  EXPECT_TRUE(is_reported());
}

TEST_F(Order, OfCopiesIsNoneEither) {
  Kokkos::deep_copy(a, y, x);
  add(b, y, z);
  EXPECT_TRUE(is_reported());
}

TEST_F(Order, OfTheHostIsItsFences) {
  Kokkos::deep_copy(a, pinned, x);
  a.fence("kzero::tests::copied");
  pinned(0) += 1;
  Kokkos::deep_copy(a, x, pinned);
  EXPECT_FALSE(is_reported());
  pinned(1) += 1;  // being read
  EXPECT_TRUE(is_reported());
}

TEST_F(Order, OfTheHostIsThatOfEventsItWaitsFor) {
  Kokkos::deep_copy(a, pinned, x);
  event.record(a);
  event.synchronize();
  pinned(0) += 1;
  EXPECT_FALSE(is_reported());
}

float sum_of(const Execution& stream, const Values& values) {
  float sum = 0;
  Kokkos::parallel_reduce(
      "kzero::stream_order::sum", tensor::Range(stream, 0, count),
      KOKKOS_LAMBDA(Index i, float& total) { total += values(i); }, sum);
  return sum;
}

TEST_F(Order, OfSumsThatTheHostGetsIsAFence) {
  add(a, x, y);
  EXPECT_EQ(sum_of(a, y), 0);
  add(b, x, y);
  EXPECT_FALSE(is_reported());
}

TEST_F(Order, OfLibrariesCallsIsNoneEither) {
  add(a, x, y);
  enqueue(b.impl_internal_space_instance(), [&] { reads(y.data(), sizeof(float)); });
  EXPECT_TRUE(is_reported());
}

TEST_F(Order, IsWantedForEachElement) {
  const Kokkos::View<bf16*, runtime::Memory> elements("kzero::tests::elements", 64);
  const auto write = [&](const Execution& stream, Index begin) {
    Kokkos::parallel_for(
        "kzero::stream_order::write", tensor::Range(stream, begin, begin + 10),
        KOKKOS_LAMBDA(Index i) { elements(i) = bf16(1.0F); });
  };
  write(a, 1);
  write(b, 11);
  EXPECT_FALSE(is_reported());
  write(b, 10);
  EXPECT_TRUE(is_reported());
}

void add_on_host(const Kokkos::View<float*, runtime::HostMemory>& values) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  static_assert(!std::is_same_v<Host, Execution>);
  Kokkos::parallel_for("kzero::stream_order::add_on_host", Kokkos::RangePolicy<Host>(0, count),
                       [=](int i) { values(i) += 1; });
}

TEST_F(Order, OfLoopsOfTheHostsOwnIsTheHosts) {
  add_on_host(pinned);
  Kokkos::deep_copy(a, x, pinned);
  EXPECT_FALSE(is_reported());
  add_on_host(pinned);
  EXPECT_TRUE(is_reported());
}

TEST_F(Order, IsReportedWithThePlace) {
  EXPECT_EQ(place_of(x.data() + 3), "byte 12 of kzero::tests::values");
  EXPECT_EQ(place_of(this), "the host's own memory");
}

}  // namespace
}  // namespace kzero::stream_order

#include "comm/communicator.hpp"

#include "base/error.hpp"
#include "comm/backends.hpp"
#include "comm/byte_view.hpp"
#include "runtime/profile.hpp"

namespace kzero::comm {

namespace {

void fill_own(const Execution& stream, const ConstSpan& mine, const Span& place) {
  if (place.data == mine.data || mine.elements == 0) return;
  Kokkos::deep_copy(stream, bytes_of(place), bytes_of(mine));
}

SpanName region_name(const Channel& channel) {
  return SpanName("{}{} of {}", "kzero::comm::", name_of(channel.operation),
                  name_of(channel.purpose));
}

}  // namespace

Request Communicator::begin_all_to_all(const Execution& stream, std::vector<ConstSpan> send,
                                       std::vector<Span> receive, Operation operation,
                                       Purpose purpose) {
  KZERO_EXPECT(static_cast<int>(send.size()) == size() &&
               static_cast<int>(receive.size()) == size());
  if (size() == 1) return 0;
  const Channel channel{group_.name(), operation, purpose};
  for (int r = 0; r < size(); ++r) {
    if (r != rank()) traffic_.add(channel, send[r].elements, send[r].bytes());
  }
  const runtime::ProfileRegion region([&] { return region_name(channel); });
  return begin(stream, std::move(send), std::move(receive), channel);
}

void Communicator::wait(const Execution& stream, Request request) {
  const runtime::ProfileRegion region([] { return "kzero::comm::wait"; }, SpanKind::wait);
  complete(stream, request);
}

Request Communicator::begin_all_gather(const Execution& stream, ConstSpan mine,
                                       std::vector<Span> receive, Purpose purpose,
                                       Operation operation) {
  KZERO_EXPECT(static_cast<int>(receive.size()) == size());
  const Channel channel{group_.name(), operation, purpose};
  if (size() == 1) {
    fill_own(stream, mine, receive[0]);
    return 0;
  }
  traffic_.add(channel, mine.elements * (size() - 1), mine.bytes() * (size() - 1));
  const runtime::ProfileRegion region([&] { return region_name(channel); });
  return gather(stream, mine, std::move(receive), channel);
}

Request Communicator::gather(const Execution& stream, ConstSpan mine, std::vector<Span> receive,
                             const Channel& channel) {
  fill_own(stream, mine, receive[rank()]);
  return begin(stream, std::vector<ConstSpan>(static_cast<std::size_t>(size()), mine),
               std::move(receive), channel);
}

Request Communicator::begin_library_sum(const Execution& stream, ConstSpan all, Span own,
                                        Purpose purpose) {
  KZERO_EXPECT(all.elements == own.elements * size());
  const Channel channel{group_.name(), Operation::reduce_scatter, purpose};
  if (size() == 1) {
    fill_own(stream, all, own);
    return 0;
  }
  traffic_.add(channel, own.elements * (size() - 1), own.bytes() * (size() - 1));
  const runtime::ProfileRegion region([&] { return region_name(channel); });
  return library_sum(stream, all, own, channel);
}

Request Communicator::library_sum(const Execution&, ConstSpan, Span, const Channel&) {
  refuse_library_sums();
}

void refuse_library_sums() {
  fail(ExitCode::usage,
       "zero.reduction = \"library\" needs run.communicator = \"nccl\": sums over MPI are ordered "
       "ones");
}

}  // namespace kzero::comm

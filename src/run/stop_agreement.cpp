#include "run/stop_agreement.hpp"

namespace kzero::run {

namespace {

/// Returns the ending that the ranks agreed on. None: the run continues.
std::optional<Ending> ending_of(Index agreed) {
  const auto wish = runtime::decode_stop(agreed);
  if (!wish) return std::nullopt;
  return Ending{std::string(name_of(wish->reason)), wish->signal};
}

}  // namespace

StopAgreement::StopAgreement(const deck::Run& run, const grid::Group& world,
                             const runtime::StopSignal& stop, NodeTimes& times)
    : run_(run), world_(world), stop_(stop), times_(times) {}

std::optional<Ending> StopAgreement::after_step(Index steps_of_this_job) {
  pace_.restart();
  if (auto found = ending_of(times_.agree(runtime::encode(stop_.wish())))) return found;
  if (run_.max_steps > 0 && steps_of_this_job >= run_.max_steps) return Ending{"max_steps"};
  return std::nullopt;
}

std::optional<Ending> StopAgreement::within_evaluation() {
  return ending_of(pace_.unpack(world_.max(pace_.pack(runtime::encode(stop_.wish())))));
}

}  // namespace kzero::run

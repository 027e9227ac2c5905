#include "engine/initial_weights.hpp"

#include "kernels/initialize.hpp"

namespace kzero::engine {

namespace {

using Master = tensor::Vector<float>;

void copy_from(const tensor::Execution& exec, const InitialValues& values,
               const param::ParamSpec& p, const param::Part& part, Master master) {
  std::vector<float> staging(static_cast<std::size_t>(part.count));
  p.split.for_each_run(part.in_param, part.count, [&](Index held, Index begin, Index count) {
    values(p, {begin, count},
           std::span(staging).subspan(static_cast<std::size_t>(held - part.in_param),
                                      static_cast<std::size_t>(count)));
  });
  Kokkos::deep_copy(exec, master,
                    Kokkos::View<float*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(
                        staging.data(), staging.size()));
  exec.fence("kzero::engine::parameter_read");
}

}  // namespace

void set_initial_weights(const tensor::Execution& exec, std::uint64_t seed,
                         const std::vector<UnitState>& units, const InitialValues& values) {
  Index first_id = 0;  // index of the unit's first parameter in the model, for random draws
  for (const UnitState& unit : units) {
    for (const param::Part& part :
         param::parts(*unit.spec, *unit.layout, unit.held.begin, unit.held.end)) {
      const param::ParamSpec& p = unit.spec->params[part.param];
      const Master master(unit.state.master() + part.in_unit - unit.held.begin,
                          static_cast<std::size_t>(part.count));
      if (values) {
        copy_from(exec, values, p, part, master);
      } else if (p.init == param::Init::normal) {
        kernels::draw_normal(exec, seed, static_cast<std::uint64_t>(first_id + part.param),
                             {part.in_param, p.split.stride, p.split.begin, p.split.length},
                             static_cast<float>(p.std), master);
      } else {
        kernels::fill<float>(exec, master, p.init == param::Init::ones ? 1.0F : 0.0F);
      }
    }
    first_id += static_cast<Index>(unit.spec->params.size());
  }
}

}  // namespace kzero::engine

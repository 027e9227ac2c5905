#include "engine/initial_weights.hpp"

#include <iterator>

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

void draw_initial(const tensor::Execution& exec, std::uint64_t seed, Index number,
                  const param::ParamSpec& p, Index first, tensor::Vector<float> values) {
  const kernels::DrawnElements elements{first, p.split.stride, p.split.begin, p.split.length};
  const auto id = static_cast<std::uint64_t>(number);
  const auto width = static_cast<float>(p.std);
  switch (p.init) {
    case param::Init::zeros:
      return kernels::fill<float>(exec, values, 0.0F);
    case param::Init::ones:
      return kernels::fill<float>(exec, values, 1.0F);
    case param::Init::constant:
      return kernels::fill<float>(exec, values, width);
    case param::Init::normal:
      return kernels::draw_normal(exec, seed, id, elements, width, values);
    case param::Init::uniform:
      return kernels::draw_uniform(exec, seed, id, elements, width, values);
  }
}

void set_initial_weights(const tensor::Execution& exec, std::uint64_t seed,
                         const param::Table& table, const std::vector<UnitState>& units,
                         const InitialValues& values) {
  Index first_id = 0;  // index of the unit's first parameter in the model, for random draws
  for (std::size_t u = 0; u < units.size(); ++u) {
    const UnitState& unit = units[u];
    for (const param::Part& part :
         param::parts(*unit.spec, *unit.layout, unit.held.begin, unit.held.end)) {
      const param::ParamSpec& p = unit.spec->params[part.param];
      const Master master(unit.state.master() + part.in_unit - unit.held.begin,
                          static_cast<std::size_t>(part.count));
      if (values) {
        copy_from(exec, values, p, part, master);
      } else {
        draw_initial(exec, seed, first_id + part.param, p, part.in_param, master);
      }
    }
    first_id += std::ssize(table[u].params);
  }
}

}  // namespace kzero::engine

#include "probe/facts.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "runtime/build_facts.hpp"
#include "runtime/execution.hpp"

extern "C" char** environ;

namespace kzero::probe {

namespace {

/// Prefixes of the variables that change how kzero and its libraries work, without those that
/// launchers and batch systems set for each rank.
constexpr std::string_view variables[] = {
    "OMP_",      "GOMP_",  "KMP_",       "KOKKOS_",         "ONEDNN_", "DNNL_",
    "OPENBLAS_", "MKL_",   "UCX_",       "MPICH_",          "MPIR_",   "FI_",
    "NCCL_",     "HDF5_",  "LD_PRELOAD", "LD_LIBRARY_PATH", "CUDNN_",  "CUBLAS",
    "MALLOC_",   "GLIBC_", "KZERO_",     "NVIDIA_TF32"};

/// Variables through which launchers and their wrappers assign cores, devices, network cards and an
/// address to each rank.
constexpr std::string_view of_a_rank[] = {"OMP_PLACES",
                                          "GOMP_CPU_AFFINITY",
                                          "KMP_AFFINITY",
                                          "UCX_NET_DEVICES",
                                          "NCCL_IB_HCA",
                                          "KOKKOS_DEVICE_ID",
                                          "MPIR_CVAR_CH3_INTERFACE_HOSTNAME"};

bool matters(std::string_view name) {
  return std::ranges::any_of(variables,
                             [&](std::string_view start) { return name.starts_with(start); }) &&
         std::ranges::find(of_a_rank, name) == std::end(of_a_rank);
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string system_name() {
  utsname names{};
  if (::uname(&names) != 0) return "unknown";
  return fmt::format("{} {} {}", names.sysname, names.release, names.machine);
}

void add_environment(Facts& facts) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (name.size() < text.size() && matters(name))
      facts.push_back({"variable " + std::string(name), std::string(text.substr(name.size() + 1))});
  }
}

}  // namespace

Facts program_facts() {
  std::string program;
  for (const auto& [name, value] : runtime::build_facts())
    program += fmt::format("{}{} {}", program.empty() ? "" : ", ", name, value);
  Facts facts{{"program", program, Weight::required},
              {"MPI library", runtime::mpi_library(), Weight::required}};
  for (const runtime::LoadedLibrary& library : runtime::loaded_libraries()) {
    if (library.name.empty() && !library.build.empty())
      facts.push_back({"build of the program", library.build, Weight::required});
  }
  return facts;
}

Facts all_facts(const Session& session) {
  Facts facts = program_facts();
  const std::string device = runtime::device_kind();
  facts.push_back({"arithmetic", session.arithmetic, Weight::required});
  facts.push_back({"bits of products", session.bits, Weight::required});
  facts.push_back({"processor", processor_name()});
  if (!device.empty()) facts.push_back({"device", device});
  facts.push_back({"cores of a node", fmt::to_string(session.cores)});
  facts.push_back({"threads of a rank", fmt::to_string(session.threads)});
  facts.push_back({"system", system_name()});
  for (const runtime::LoadedLibrary& library : runtime::loaded_libraries()) {
    const bool is_of_kernel = library.name.starts_with("linux-");  // the system names its version
    if (!library.name.empty() && !library.build.empty() && !is_of_kernel)
      facts.push_back({"library " + library.name, library.build});
  }
  add_environment(facts);
  std::ranges::sort(facts, {}, &Fact::name);
  return facts;
}

std::string encode(const Facts& facts) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Fact& fact : facts)
    rows.push_back({fact.name, fact.value, fact.weight == Weight::required});
  // Variables may hold any bytes.
  return rows.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

Facts decode(const std::string& text) {
  Facts facts;
  for (const auto& row : nlohmann::json::parse(text))
    facts.push_back({row[0], row[1], row[2] ? Weight::required : Weight::advisory});
  return facts;
}

}  // namespace kzero::probe

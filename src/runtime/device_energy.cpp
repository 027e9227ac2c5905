#include <dlfcn.h>
#include <fmt/format.h>

#include <limits>
#include <string_view>

#include "base/error.hpp"
#include "runtime/energy.hpp"

namespace kzero::runtime {

namespace {

/// The functions of NVML that are needed, found at run time: a build needs no driver. The types are
/// those of nvml.h.
class Nvml {
 public:
  using Result = int;  // 0: success
  using Device = void*;

  /// Throws Error(other).
  explicit Nvml(const std::string& library)
      : opened_(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    KZERO_REQUIRE(opened_ != nullptr, ExitCode::other, "{}", ::dlerror());
    find("nvmlErrorString", error_string_);
    find("nvmlShutdown", shutdown_);
    find("nvmlDeviceGetHandleByPciBusId_v2", device_by_address_);
    find("nvmlDeviceGetTotalEnergyConsumption", energy_);
    Result (*init)() = nullptr;
    find("nvmlInit_v2", init);
    require(init(), "nvmlInit_v2");
  }
  ~Nvml() { shutdown_(); }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  Device device(const std::string& address) const {
    Device found = nullptr;
    require(device_by_address_(address.c_str(), &found), "nvmlDeviceGetHandleByPciBusId_v2");
    return found;
  }

  /// Returns millijoules since the driver was loaded.
  unsigned long long energy(Device device) const {
    unsigned long long found = 0;
    require(energy_(device, &found), "nvmlDeviceGetTotalEnergyConsumption");
    return found;
  }

 private:
  template <class Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(::dlsym(opened_, name));
    KZERO_REQUIRE(function != nullptr, ExitCode::other, "NVML has no {}", name);
  }

  void require(Result result, std::string_view call) const {
    KZERO_REQUIRE(result == 0, ExitCode::other, "NVML: {}: {}", call, error_string_(result));
  }

  void* opened_;  // stays open until the process ends, like other libraries
  const char* (*error_string_)(Result) = nullptr;
  Result (*shutdown_)() = nullptr;
  Result (*device_by_address_)(const char*, Device*) = nullptr;
  Result (*energy_)(Device, unsigned long long*) = nullptr;
};

class NvmlCounter final : public EnergyCounter {
 public:
  NvmlCounter(const std::string& address, const std::string& library)
      : nvml_(library), device_(nvml_.device(address)), begin_(nvml_.energy(device_)) {}

  double joules() override {
    try {
      if (!failed_) return 1e-3 * static_cast<double>(nvml_.energy(device_) - begin_);
    } catch (const Error&) {
      failed_ = true;
    }
    return std::numeric_limits<double>::quiet_NaN();
  }

 private:
  Nvml nvml_;
  Nvml::Device device_;
  unsigned long long begin_;
  bool failed_ = false;
};

}  // namespace

FoundCounter device_energy(const std::string& address, const std::string& library) {
  try {
    return {std::make_unique<NvmlCounter>(address, library), "NVML"};
  } catch (const Error& error) {
    return {.problem = fmt::format("device {}: {}", address, error.what())};
  }
}

}  // namespace kzero::runtime

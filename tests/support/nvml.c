/* Functions of NVML with one device, 0000:18:00.0, which has used 1 J more at each reading. */
#include <string.h>

static unsigned long long millijoules = 5000;

int nvmlInit_v2(void) { return 0; }

int nvmlShutdown(void) { return 0; }

const char* nvmlErrorString(int result) { return result == 6 ? "Not Found" : "Success"; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
  *device = &millijoules;
  return strcmp(address, "0000:18:00.0") == 0 ? 0 : 6;
}

int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* energy) {
  *energy = *(unsigned long long*)device += 1000;
  return 0;
}

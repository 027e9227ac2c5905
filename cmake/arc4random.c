/* For cmake/package.sh: what Debian 12's static libstdc++ calls for std::random_device. glibc has it since 2.36. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

__attribute__((visibility("hidden"))) uint32_t arc4random(void);

uint32_t arc4random(void) {
  uint32_t bits;
  if (getrandom(&bits, sizeof bits, 0) != sizeof bits) abort(); /* so few bytes come whole, after a signal too */
  return bits;
}

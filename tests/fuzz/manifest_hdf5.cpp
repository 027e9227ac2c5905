// Any bytes after a header that says they are undamaged: these reach the HDF5 library.
#include "checkpoint/format/manifest.hpp"
#include "fuzz.hpp"
#include "saved.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kzero;
  if (size < fuzz::header_bytes) return 0;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  fuzz::sign(bytes);
  fuzz::accepts([&] { checkpoint::parse_manifest(bytes, "fuzz"); });
  return 0;
}

// The bytes of a manifest file as they are: nothing damaged may get past the checksum in front.
#include "checkpoint/format/manifest.hpp"
#include "fuzz.hpp"
#include "saved.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kzero;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  if (!fuzz::accepts([&] { checkpoint::parse_manifest(bytes, "fuzz"); })) return 0;
  std::string again = bytes;
  fuzz::sign(again);
  fuzz::require(again == bytes, "a manifest that is accepted has its checksum");
  return 0;
}

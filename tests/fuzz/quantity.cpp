// Sizes and times: what was read is printed such that it reads as the same.
#include "deck/quantity.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kzero;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto bytes = deck::parse_size(text)) {
    fuzz::require(deck::parse_size(deck::format_size(*bytes)) == bytes, "a size reads as printed");
  }
  if (const auto seconds = deck::parse_duration(text)) {
    fuzz::require(deck::parse_duration(deck::format_duration(*seconds)) == seconds,
                  "a time reads as printed");
  }
  return 0;
}

// Decks and overrides: the bytes up to the first NUL are the deck, each part after it is an
// override. A Config that was accepted is written and read back as the same.
#include <sstream>
#include <vector>

#include "deck/reader.hpp"
#include "deck/writer.hpp"
#include "fuzz.hpp"

namespace {

using namespace kzero;

void read_for(const std::string& deck, const std::vector<std::string>& overrides,
              const deck::Target& target) {
  deck::Config config;
  if (!fuzz::accepts([&] { config = deck::read({"fuzz.toml", deck}, overrides, target); })) return;
  const std::string text = deck::resolved(config);
  deck::Config again;
  const auto read_back = [&] { again = deck::read({"fuzz.toml", text}, {}, target); };
  fuzz::require(fuzz::accepts(read_back), "a deck that was written is accepted");
  fuzz::require(deck::resolved(again) == text, "a deck that was written reads as the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream parts(std::string(reinterpret_cast<const char*>(data), size));
  std::string deck;
  std::getline(parts, deck, '\0');
  std::vector<std::string> overrides;
  for (std::string part; std::getline(parts, part, '\0');) overrides.push_back(part);
  read_for(deck, overrides, {});
  read_for(deck, overrides, {.ranks = 4, .purpose = deck::Purpose::train});
  return 0;
}

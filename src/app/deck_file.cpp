#include "app/deck_file.hpp"

#include <fstream>
#include <sstream>

#include "base/error.hpp"

namespace kzero::app {

deck::Source load(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  KZERO_REQUIRE(in, ExitCode::usage, "{}: the deck cannot be read", file);
  return {file, text.str()};
}

}  // namespace kzero::app

// kzero: command line in, exit code out.
#include "app/cli.hpp"
#include "runtime/session.hpp"

int main(int argc, char** argv) {
  return kzero::runtime::ended(static_cast<int>(kzero::app::main(argc, argv)));
}

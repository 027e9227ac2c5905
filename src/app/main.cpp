// kzero: command line in, exit code out.
#include "app/cli.hpp"

int main(int argc, char** argv) { return static_cast<int>(kzero::app::main(argc, argv)); }

// The TOML parser, toml++, with kzero's settings. Its headers alone: the sanitizers and the fuzzers
// see every line of it, and the limit of nesting is kzero's.
#pragma once

// Some of its assertions fail for text that is not TOML ("[}"), which the code behind them reports
// well. A debug build would end there, and in a release build the compiler may take them for true.
#pragma push_macro("NDEBUG")
#undef NDEBUG
// NOLINTBEGIN(readability-identifier-naming): the library's names
#define TOML_ASSERT(expr) static_cast<void>(0)
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 32
// NOLINTEND(readability-identifier-naming)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

// The TOML parser, toml++, with kzero's settings. Only its headers are used: the sanitizers and
// fuzzers see every line of it, and kzero sets the limit on nesting.
#pragma once

// Some of its assertions fail for text that is not TOML ("[}"), which the code after them reports
// correctly. A debug build would abort there, and in a release build the compiler may assume that
// they hold.
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

#include "base/error.hpp"

namespace kzero {

void expectation_failed(const char* condition, const char* file, int line) {
  fail(ExitCode::other, "internal error at {}:{}: expected {}", file, line, condition);
}

}  // namespace kzero

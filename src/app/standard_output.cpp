#include "app/standard_output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <streambuf>

namespace kzero::app {

namespace {

/// Forwards everything to the C library's stdout, as std::cout does by itself.
class WatchedOutput : public std::streambuf {
 public:
  int error() const { return error_; }

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    return noting([&] { return std::fputc(c, stdout) != EOF; }) ? c : traits_type::eof();
  }

  std::streamsize xsputn(const char* text, std::streamsize count) override {
    std::size_t written = 0;
    const auto wanted = static_cast<std::size_t>(count);
    noting([&] {
      written = std::fwrite(text, 1, wanted, stdout);
      return written == wanted;
    });
    return static_cast<std::streamsize>(written);
  }

  int sync() override {
    return noting([] { return std::fflush(stdout) == 0; }) ? 0 : -1;
  }

 private:
  template <class F>
  bool noting(F&& write) {
    errno = 0;
    const bool is_written = write();
    if (!is_written && error_ == 0) error_ = errno != 0 ? errno : EIO;
    return is_written;
  }

  int error_ = 0;
};

/// Never destroyed, because std::cout is flushed once more when the process ends.
WatchedOutput& watched() {
  static auto* const output = new WatchedOutput;
  return *output;
}

}  // namespace

void reserve_standard_descriptors() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(number, F_GETFD) >= 0) continue;
    // All lower numbers are in use here, so open() returns this one.
    (void)!::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void watch_output() { std::cout.rdbuf(&watched()); }

int output_error() {
  std::cout.flush();
  return watched().error();
}

ExitCode code_with_output(ExitCode code) {
  const int error = output_error();
  if (code != ExitCode::done || error == 0 || error == EPIPE) return code;
  std::cerr << "kzero: standard output cannot be written: " << std::strerror(error) << std::endl;
  return ExitCode::files;
}

}  // namespace kzero::app

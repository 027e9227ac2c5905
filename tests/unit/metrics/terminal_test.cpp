#include "metrics/terminal.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>

namespace kzero::metrics {
namespace {

/// A pseudoterminal pair. The program gets one end.
struct Pseudoterminal {
  int screen = ::posix_openpt(O_RDWR | O_NOCTTY);
  int program = -1;

  Pseudoterminal() {
    if (::grantpt(screen) == 0 && ::unlockpt(screen) == 0)
      program = ::open(::ptsname(screen), O_RDWR | O_NOCTTY);
  }
  ~Pseudoterminal() {
    ::close(program);
    ::close(screen);
  }
  void resize(Index columns) const {
    const winsize size{24, static_cast<unsigned short>(columns), 0, 0};
    ASSERT_EQ(::ioctl(screen, TIOCSWINSZ, &size), 0);
  }
};

TEST(Terminal, TellsItsWidthAnewEachTime) {
  const Pseudoterminal pair;
  ASSERT_GE(pair.program, 0);
  ::setenv("TERM", "xterm", 1);
  const auto terminal = Terminal::behind(pair.program);
  ASSERT_TRUE(terminal.has_value());
  for (const Index columns : {0, 80, 40, 200}) {
    pair.resize(columns);
    EXPECT_EQ(terminal->columns(), columns);
  }
}

TEST(Terminal, ThatCannotEraseIsNone) {
  const Pseudoterminal pair;
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(Terminal::behind(pair.program).has_value());
  ::setenv("TERM", "xterm", 1);
}

TEST(Terminal, FilesPipesAndWhatIsClosedAreNone) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  EXPECT_FALSE(Terminal::behind(ends[1]).has_value()) << "nobody above reads from it";
  for (const int end : ends) ::close(end);
  EXPECT_FALSE(Terminal::behind(ends[1]).has_value());
  const int none = ::open("/dev/null", O_WRONLY);
  EXPECT_FALSE(Terminal::behind(none).has_value());
  ::close(none);
}

}  // namespace
}  // namespace kzero::metrics

#include "app/deck_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "support/temporary_folder.hpp"

namespace kzero::app {
namespace {

using std::chrono::milliseconds;

class DeckFile : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  std::string pipe() const {
    EXPECT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    return path("pipe");
  }

  static std::string problem(const std::string& file, const PipePatience& patience = {
                                                          milliseconds(200), milliseconds(200)}) {
    try {
      load(file, patience);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return error.what();
    }
    return "";
  }

 private:
  tests::TemporaryFolder folder_;
};

TEST_F(DeckFile, IsReadWholeUpToItsLimit) {
  const std::string text(262'144, 'x');
  std::ofstream(path("deck")) << text;
  EXPECT_EQ(load(path("deck")).text, text);
  std::ofstream(path("deck")) << text << 'x';
  EXPECT_NE(problem(path("deck")).find("deck: the deck cannot be read: it has more than 262144"),
            std::string::npos);
}

TEST_F(DeckFile, MayBeAPipeThatIsWrittenSlowly) {
  const std::string file = pipe();
  std::jthread writer([&] {
    std::this_thread::sleep_for(milliseconds(50));
    std::ofstream out(file);
    for (const char* part : {"[mo", "del]\n", "layers = 2\n"}) {
      out << part << std::flush;
      std::this_thread::sleep_for(milliseconds(20));
    }
  });
  EXPECT_EQ(load(file).text, "[model]\nlayers = 2\n");
}

TEST_F(DeckFile, ThatNobodyWritesIsAnError) {
  EXPECT_NE(problem(pipe()).find("nobody has written to this pipe for 0.2 s"), std::string::npos);
}

TEST_F(DeckFile, ThatNobodyWritesMayBeRefusedAtOnce) {
  EXPECT_EQ(problem(pipe(), {milliseconds(0), milliseconds(200)}),
            path("pipe") + ": the deck cannot be read: it is a pipe that nobody writes to");
}

TEST_F(DeckFile, WithoutEndIsAnError) {
  const std::string file = pipe();
  std::jthread writer([&] {
    std::ofstream out(file);
    for (int i = 0; i < 10000 && out; ++i) out << std::string(1000, '#') << std::flush;
  });
  signal(SIGPIPE, SIG_IGN);
  EXPECT_NE(problem(file).find("more than 262144 bytes"), std::string::npos);
  for (const char* device : {"/dev/full", "/dev/zero"})
    EXPECT_NE(problem(device).find("neither a file nor a pipe"), std::string::npos) << device;
}

TEST_F(DeckFile, ThatIsMissingIsNamedWithItsNeighbour) {
  std::ofstream(path("quickstart.toml")) << "";
  std::ofstream(path("other.toml")) << "";
  EXPECT_NE(problem(path("quikstart.toml")).find("did you mean " + path("quickstart.toml") + "?"),
            std::string::npos);
  EXPECT_EQ(problem(path("nothing_like_it")).find("did you mean"), std::string::npos);
  EXPECT_NE(problem(path("no/deck.toml")).find("there is no folder " + path("no")),
            std::string::npos);
  EXPECT_NE(problem(path("")).find("it is a directory"), std::string::npos);
}

}  // namespace
}  // namespace kzero::app

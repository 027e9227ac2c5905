#include "app/prompt_input.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "base/bytes.hpp"
#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"

namespace kzero::app {

namespace {

/// Reads to the end. Waits if another program has made the descriptor non-blocking.
std::string read_all(int descriptor, const std::string& name) {
  std::string text;
  std::vector<char> part(std::size_t{1} << 20);
  while (true) {
    const ssize_t count =
        uninterrupted([&] { return ::read(descriptor, part.data(), part.size()); });
    if (count == 0) return text;
    if (count < 0 && errno == EAGAIN) {
      pollfd writer{descriptor, POLLIN, 0};
      ::poll(&writer, 1, -1);
      continue;
    }
    KZERO_REQUIRE(count >= 0, ExitCode::files, "{}: cannot be read: {}", printable(name),
                  std::strerror(errno));
    text.append(part.data(), static_cast<std::size_t>(count));
    KZERO_REQUIRE(std::ssize(text) <= max_prompt_bytes, ExitCode::files,
                  "{}: is larger than {}, the most that one launch reads as prompts; divide it",
                  printable(name), format_bytes(max_prompt_bytes));
  }
}

std::string read_file(const std::string& file) {
  const Descriptor input(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  KZERO_REQUIRE(input.number() >= 0, ExitCode::files, "{}: cannot be opened: {}", printable(file),
                std::strerror(errno));
  return read_all(input.number(), file);
}

}  // namespace

PromptInput::PromptInput(const std::string& file) : file_(file == "-" ? "" : file) {}

void PromptInput::start() {
  if (text_.valid()) return;
  std::packaged_task<std::string()> task([file = file_, name = name()] {
    return file.empty() ? read_all(STDIN_FILENO, name) : read_file(file);
  });
  text_ = task.get_future().share();
  // Detached: a run that fails earlier does not wait for the writer.
  std::thread(std::move(task)).detach();
}

const std::string& PromptInput::text() {
  start();
  return text_.get();
}

}  // namespace kzero::app

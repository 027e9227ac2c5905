#include "runtime/build_facts.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/processor.hpp"
#include "base/version.hpp"
#include "runtime/execution.hpp"

namespace kzero::runtime {

std::string kernel_arithmetic() {
#if defined(__AVX512BF16__)
  const char* const instructions = " for AVX-512 with bf16";
#elif defined(__AVX512F__)
  const char* const instructions = " for AVX-512";
#elif defined(__AVX2__)
  const char* const instructions = " for AVX2";
#elif defined(__ARM_FEATURE_SVE)
  const char* const instructions = " for SVE";
#elif defined(__aarch64__)
  const char* const instructions = " for AArch64";
#elif defined(__x86_64__)
  const char* const instructions = " for x86-64";
#else
  const char* const instructions = "";
#endif
  const char* products = "";
  if (kernels_on_host && amx_available()) products = " and AMX";
#if defined(__AVX512BF16__)
  else if (kernels_on_host && pairs_are_slow())
    products = " (products widened)";
#endif
  return compiler() + instructions + products;
}

std::vector<std::pair<std::string, std::string>> build_facts() {
  return {{"kzero", version()},
          {"git", git_hash()},
          {"compiler", compiler()},
          {"build", build_type()},
          {"kokkos", std::to_string(KOKKOS_VERSION / 10000) + "." +
                         std::to_string(KOKKOS_VERSION / 100 % 100) + "." +
                         std::to_string(KOKKOS_VERSION % 100)},
          {"execution", Execution::name()}};
}

/// Returns the first line. MPI libraries add pages of build options after it.
std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string line(text, static_cast<std::size_t>(length));
  line = line.substr(0, line.find('\n'));
  std::ranges::replace(line, '\t', ' ');
  return line;
}

namespace {

using Word = ElfW(Word);

constexpr std::string_view gnu{"GNU\0", 4};

std::size_t aligned(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

/// Returns the build id in a segment of notes. Each note begins with the lengths of its name and
/// description and with its kind; the name and the description follow.
std::string build_id(const char* notes, std::size_t bytes, std::size_t alignment) {
  struct Head {
    Word name, description, kind;
  };
  while (bytes >= sizeof(Head)) {
    Head head;
    std::memcpy(&head, notes, sizeof head);
    const std::size_t begin = aligned(sizeof head + head.name, alignment);
    const std::size_t length = aligned(begin + head.description, alignment);
    if (begin + head.description > bytes) return {};
    const std::string_view name(notes + sizeof head, head.name);
    if (head.kind == NT_GNU_BUILD_ID && name == gnu) {
      std::string text;
      for (Word i = 0; i < head.description; ++i)
        text += fmt::format("{:02x}", static_cast<unsigned char>(notes[begin + i]));
      return text;
    }
    if (length > bytes) return {};
    notes += length;
    bytes -= length;
  }
  return {};
}

int add(dl_phdr_info* info, std::size_t, void* found) {
  const std::string_view path = info->dlpi_name;
  LoadedLibrary library{std::string(path.substr(path.rfind('/') + 1)), {}};
  for (int i = 0; i < info->dlpi_phnum && library.build.empty(); ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader returns addresses as numbers
    const auto* notes = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    library.build = build_id(notes, segment.p_memsz, segment.p_align == 8 ? 8 : 4);
  }
  static_cast<std::vector<LoadedLibrary>*>(found)->push_back(std::move(library));
  return 0;
}

}  // namespace

std::vector<LoadedLibrary> loaded_libraries() {
  std::vector<LoadedLibrary> found;
  ::dl_iterate_phdr(&add, &found);
  std::ranges::sort(found, {}, &LoadedLibrary::name);
  return found;
}

}  // namespace kzero::runtime

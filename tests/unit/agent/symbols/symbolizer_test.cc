// SPDX-License-Identifier: Apache-2.0
// Finds names and lines in the files of the victims, in damaged files and in other files.
#include "agent/symbols/symbolizer.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "base/read_file.h"
#include "temporary_tree.h"
#include "victim_process.h"

namespace rollcall {
namespace {

std::shared_ptr<ElfFile> OpenVictim(const std::string& program) {
  const std::string path = VictimPath(program);
  auto file = ElfFile::Open(UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC)), path);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? *file : nullptr;
}

// The address of a function in its library's file.
uint64_t FindAddress(const std::string& library, const char* function) {
  void* handle = dlopen(VictimPath(library).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return 0;
  const char* address = static_cast<const char*>(dlsym(handle, function));
  Dl_info info = {};
  dladdr(address, &info);
  const uint64_t offset = address - static_cast<const char*>(info.dli_fbase);
  dlclose(handle);
  return offset;
}

TEST(SymbolizerTest, FindsFunctionFileAndLine) {
  Symbolizer symbolizer;
  const auto file = OpenVictim("libvictim_library.so");
  const auto& names =
      symbolizer.Resolve(file, FindAddress("libvictim_library.so", "victim_library_call"));
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(names[0].function, "victim_library_call");
  EXPECT_NE(names[0].source_file.find("victim_library.cc"), std::string::npos);
  EXPECT_GT(names[0].line, 0);
}

TEST(SymbolizerTest, FindsNoNameOutsideOfAllFunctions) {
  const auto file = OpenVictim("libvictim_library.so");
  Symbolizer symbolizer;
  for (const uint64_t address : {uint64_t{1}, uint64_t{1} << 40, UINT64_MAX}) {
    const auto& names = symbolizer.Resolve(file, address);
    ASSERT_EQ(names.size(), 1u);
    EXPECT_EQ(names[0].function, "") << address;
  }
}

TEST(SymbolizerTest, ReturnsTheSameAnswerFromItsCache) {
  Symbolizer symbolizer;
  const uint64_t address = FindAddress("libvictim_library.so", "victim_library_call");
  const auto first = symbolizer.Resolve(OpenVictim("libvictim_library.so"), address);
  const auto again = symbolizer.Resolve(OpenVictim("libvictim_library.so"), address);
  EXPECT_EQ(first[0].function, again[0].function);
  EXPECT_EQ(first[0].line, again[0].line);
}

// libdw opens whatever file such a link names, and a pipe would block it for ever. The symbol table
// is enough for the name of the function.
TEST(SymbolizerTest, FollowsNoLinkToSharedDebugInformationThatOthersWrote) {
  TemporaryTree tree;
  ASSERT_EQ(chmod(tree.root().c_str(), 0777), 0);
  tree.Write("link", std::string("/pipe\0", 6) + std::string(20, 'i'));
  const std::string linked = tree.root() + "/linked.so";
  const std::string command = "objcopy --add-section .gnu_debugaltlink=" + tree.root() + "/link " +
                              VictimPath("libvictim_library.so") + " " + linked;
  ASSERT_EQ(std::system(command.c_str()), 0);
  const auto file = ElfFile::Open(UniqueFd(open(linked.c_str(), O_RDONLY | O_CLOEXEC)), linked);
  ASSERT_TRUE(file.ok()) << file.status();
  Symbolizer symbolizer;
  const auto& names =
      symbolizer.Resolve(*file, FindAddress("libvictim_library.so", "victim_library_call"));
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(names[0].function, "victim_library_call");
  EXPECT_EQ(names[0].line, 0);
}

TEST(SymbolizerTest, SendsNoRequestToADebuginfodServer) {
  // Port 1 refuses connections, so that a request fails at once instead of blocking the test.
  setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1", 1);
  setenv("DEBUGINFOD_VERBOSE", "1", 1);
  testing::internal::CaptureStderr();
  Symbolizer symbolizer;
  symbolizer.Resolve(OpenVictim("stack_victim_stripped"), 0x1000);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  unsetenv("DEBUGINFOD_URLS");
  unsetenv("DEBUGINFOD_VERBOSE");
}

// Changes bytes of the file at random. Names may then be wrong, and nothing else.
TEST(SymbolizerTest, SurvivesDamagedFiles) {
  const std::string bytes = ReadFile(VictimPath("libvictim_library.so")).value_or("");
  ASSERT_GT(bytes.size(), 10000u);
  TemporaryTree tree;
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::string damaged = bytes;
    if (round % 5 == 0) damaged.resize(random() % damaged.size());
    const size_t changes = 1 + random() % 60;
    for (size_t i = 0; i < changes && !damaged.empty(); ++i) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    const std::string path = tree.root() + "/damaged" + std::to_string(round);
    std::ofstream(path, std::ios::binary) << damaged;
    const auto file = ElfFile::Open(UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC)), path);
    if (!file.ok()) continue;
    Symbolizer symbolizer;
    for (uint64_t address = 0x1000; address < 0x1400; address += 16) {
      EXPECT_FALSE(symbolizer.Resolve(*file, address).empty());
    }
  }
}

TEST(DemangleTest, DemanglesCxxNamesAndLeavesOthers) {
  EXPECT_EQ(Demangle("_Z3fooi"), "foo(int)");
  EXPECT_EQ(Demangle("ncclAllReduce"), "ncclAllReduce");
  EXPECT_EQ(Demangle("_Znot a name"), "_Znot a name");
  EXPECT_EQ(Demangle("__libc_start_main@@GLIBC_2.34"), "__libc_start_main");
  EXPECT_EQ(Demangle(""), "");
}

TEST(DemangleTest, TruncatesVeryLongNames) {
  EXPECT_LE(Demangle("_Z" + std::string(100000, 'x')).size(), 1100u);
}

TEST(ElfFileTest, RefusesAFileThatIsNotElf) {
  TemporaryTree tree;
  tree.Write("text", "just some text, long enough to be read as a header of sixty-four bytes....");
  tree.Write("empty", "");
  tree.Write("cut", std::string("\177ELF\2\1\1", 7));
  for (const char* name : {"text", "empty", "cut"}) {
    const std::string path = tree.root() + "/" + name;
    EXPECT_FALSE(ElfFile::Open(UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC)), path).ok())
        << name;
  }
}

// A truncated file is refused or has fewer contents; the reader never crashes.
TEST(ElfFileTest, SurvivesATruncatedFile) {
  const std::string whole = ReadFile(VictimPath("libvictim_library.so")).value_or("");
  ASSERT_GT(whole.size(), 4096u);
  TemporaryTree tree;
  const std::string path = tree.root() + "/cut";
  for (size_t size = 0; size < whole.size(); size += 509) {
    tree.Write("cut", whole.substr(0, size));
    const auto file = ElfFile::Open(UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC)), path);
    if (!file.ok()) continue;
    Symbolizer symbolizer;
    EXPECT_FALSE(symbolizer.Resolve(*file, 0x1100).empty());
  }
}

}  // namespace
}  // namespace rollcall

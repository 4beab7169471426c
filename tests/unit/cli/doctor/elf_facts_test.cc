// SPDX-License-Identifier: Apache-2.0
// Reads real files: the library, the simulated NCCL and driver, this program, and damaged ones.
#include "cli/doctor/elf_facts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/read_file.h"
#include "temporary_tree.h"

namespace rollcall::doctor {
namespace {

std::string Contents(const std::string& path) { return ReadFile(path).value_or(""); }

TEST(ElfFactsTest, AProgramHasAnInterpreterAndNeedsLibraries) {
  const ElfFacts facts = ReadElf("/proc/self/exe");
  EXPECT_TRUE(facts.is_elf);
  EXPECT_FALSE(facts.machine.empty());
  EXPECT_NE(facts.interpreter.find("ld-"), std::string::npos) << facts.interpreter;
  const bool needs_libc = std::count(facts.needed.begin(), facts.needed.end(), "libc.so.6") == 1;
  EXPECT_TRUE(needs_libc);
  EXPECT_FALSE(facts.has_nccl);
  EXPECT_FALSE(facts.has_marker_calls);
}

TEST(ElfFactsTest, ALibraryHasNoInterpreter) {
  const ElfFacts facts = ReadElf(ROLLCALL_LIBRARY);
  EXPECT_TRUE(facts.is_elf);
  EXPECT_EQ(facts.interpreter, "");
}

TEST(ElfFactsTest, NcclAndTheDriverAreKnownByWhatTheyDefine) {
  EXPECT_TRUE(ReadElf(ROLLCALL_SIM_DIR "/libnccl.so.2").has_nccl);
  EXPECT_FALSE(ReadElf(ROLLCALL_SIM_DIR "/libnccl.so.2").has_marker_calls);
  EXPECT_TRUE(ReadElf(ROLLCALL_SIM_DIR "/libcuda.so.1").has_marker_calls);
  EXPECT_FALSE(ReadElf(ROLLCALL_SIM_DIR "/libcuda.so.1").has_nccl);
}

TEST(ElfFactsTest, NothingElseIsElf) {
  const TemporaryTree tree;
  tree.Write("script", "#!/bin/sh\n");
  tree.Write("empty", "");
  EXPECT_FALSE(ReadElf(tree.root() + "/script").is_elf);
  EXPECT_FALSE(ReadElf(tree.root() + "/empty").is_elf);
  EXPECT_FALSE(ReadElf(tree.root() + "/missing").is_elf);
  EXPECT_FALSE(ReadElf(tree.root()).is_elf);
}

TEST(ElfFactsTest, AFileThatIsCutShortGivesLessAndNoCrash) {
  const TemporaryTree tree;
  const std::string whole = Contents(ROLLCALL_SIM_DIR "/libnccl.so.2");
  ASSERT_GT(whole.size(), 1000u);
  for (size_t size = 0; size < whole.size(); size += whole.size() / 97 + 1) {
    tree.Write("cut", whole.substr(0, size));
    EXPECT_FALSE(ReadElf(tree.root() + "/cut").has_nccl) << size;  // the tables come last
  }
}

}  // namespace
}  // namespace rollcall::doctor

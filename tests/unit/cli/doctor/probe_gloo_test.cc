// SPDX-License-Identifier: Apache-2.0
// Looks for gloo in a PyTorch made of this build's own libraries: librollcall.so exports each
// function that it wraps.
#include "cli/doctor/probe_gloo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "temporary_tree.h"

namespace rollcall::doctor {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

class ProbeGlooTest : public testing::Test {
 protected:
  // What the program finds if its libtorch_cpu.so is this file.
  GlooFacts Find(const std::string& library) {
    const std::string folder = tree_.root() + "/site/torch/lib";
    std::filesystem::create_directories(folder);
    std::filesystem::create_symlink(library, folder + "/libtorch_cpu.so");
    ProgramFacts program;
    program.python_folders = {tree_.root(), tree_.root() + "/site"};
    return FindGloo(program, {});
  }

  const TemporaryTree tree_;
};

GlooFacts Compare(const std::set<std::string>& defined) {
  GlooFacts facts;
  CompareWithTable(defined, &facts);
  return facts;
}

TEST_F(ProbeGlooTest, FindsEachFunctionAndTheVersion) {
  tree_.Write("site/torch-2.13.0+cpu.dist-info/METADATA", "");
  const GlooFacts facts = Find(ROLLCALL_LIBRARY);
  EXPECT_EQ(facts.version, "2.13.0+cpu");
  EXPECT_GT(facts.known, 20);
  EXPECT_EQ(facts.found, facts.known);
  EXPECT_THAT(facts.absent, IsEmpty());
  EXPECT_THAT(facts.changed, IsEmpty());
  EXPECT_THAT(facts.lost, IsEmpty());
}

TEST_F(ProbeGlooTest, ALibraryWithoutGlooHasNothing) {
  const GlooFacts facts = Find(ROLLCALL_SIM_DIR "/libnccl.so.2");
  EXPECT_EQ(facts.found, 0);
  EXPECT_THAT(facts.absent, Contains("ProcessGroupGloo::allreduce"));
  EXPECT_THAT(facts.lost, Contains("ProcessGroupGloo::enqueue"));
}

TEST_F(ProbeGlooTest, AProgramThatIsLinkedWithPyTorchHasItInItsOwnPath) {
  std::filesystem::create_directories(tree_.root() + "/lib");
  std::filesystem::create_symlink(ROLLCALL_LIBRARY, tree_.root() + "/lib/libtorch_cpu.so");
  ProgramFacts program;
  program.elf.runpath = {tree_.root() + "/lib"};
  EXPECT_EQ(FindGloo(program, {}).path, tree_.root() + "/lib/libtorch_cpu.so");
  EXPECT_EQ(FindGloo({}, {{"LD_LIBRARY_PATH", "/no:" + tree_.root() + "/lib"}}).path,
            tree_.root() + "/lib/libtorch_cpu.so");
  EXPECT_EQ(FindGloo({}, {}).path, "");
}

TEST_F(ProbeGlooTest, OneOfTheFormsOfAFunctionIsEnough) {
  const GlooFacts facts = Compare({"_ZN4c10d12ProcessGroup12setGroupDescERKSs"});
  EXPECT_EQ(facts.found, 1);
  EXPECT_THAT(facts.lost, Not(Contains("ProcessGroup::setGroupDesc")));
  EXPECT_THAT(facts.lost, Contains("PrefixStore::PrefixStore"));
  EXPECT_THAT(facts.lost, Contains("ProcessGroupGloo::~ProcessGroupGloo"));
}

TEST_F(ProbeGlooTest, AFunctionWithOtherArgumentsIsChanged) {
  const GlooFacts facts = Compare({"_ZN4c10d16ProcessGroupGloo9allreduceEi",
                                   "_ZN4c10d16ProcessGroupGloo9allreduce2Ei", "_ZN4c10d", "_ZN4"});
  EXPECT_THAT(facts.changed, ElementsAre("ProcessGroupGloo::allreduce"));
  EXPECT_EQ(facts.found, 0);
}

}  // namespace
}  // namespace rollcall::doctor

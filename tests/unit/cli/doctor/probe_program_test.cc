// SPDX-License-Identifier: Apache-2.0
// Follows scripts and search paths to real programs, and finds which NCCL they would load.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cli/doctor/probes.h"
#include "temporary_tree.h"

namespace rollcall::doctor {
namespace {

class ProbeProgramTest : public testing::Test {
 protected:
  void Script(const std::string& name, const std::string& text) const {
    tree_.Write(name, text);
    ASSERT_EQ(chmod((tree_.root() + "/" + name).c_str(), 0755), 0);
  }

  ProgramFacts Probe(const std::string& command) const {
    return ProbeProgram({command, "argument"}, {{"PATH", tree_.root() + "/bin:/usr/bin:/bin"}});
  }

  // Folders of Python's packages in the tree; no program.
  ProgramFacts Python() const {
    ProgramFacts facts;
    facts.python_folders = {tree_.root() + "/site"};
    return facts;
  }

  const TemporaryTree tree_;
  const HostFiles files_{tree_.root()};
};

TEST_F(ProbeProgramTest, FindsAProgramOnThePath) {
  const ProgramFacts facts = Probe("sleep");
  EXPECT_EQ(facts.error, "");
  EXPECT_TRUE(facts.path == "/usr/bin/sleep" || facts.path == "/bin/sleep") << facts.path;
  EXPECT_TRUE(facts.elf.is_elf);
  EXPECT_EQ(facts.elf.machine, facts.machine);
  EXPECT_FALSE(facts.elf.interpreter.empty());
  EXPECT_FALSE(facts.changes_user);
}

TEST_F(ProbeProgramTest, SaysWhyACommandCannotRun) {
  tree_.Write("bin/not-executable", "");
  EXPECT_EQ(Probe("no-such-command").error, "no such command on the PATH");
  EXPECT_EQ(Probe("/no/such/file").error, "No such file or directory");
  EXPECT_EQ(Probe("/tmp").error, "it is not a file");
  EXPECT_EQ(Probe("not-executable").error, "Permission denied");
}

TEST_F(ProbeProgramTest, FollowsTheFirstLinesOfScripts) {
  Script("bin/launch", "#!/usr/bin/env -S A=b sleep\n");
  Script("bin/outer", "#!" + tree_.root() + "/bin/launch -x\n");
  const ProgramFacts facts = Probe("outer");
  EXPECT_EQ(facts.error, "");
  EXPECT_EQ(facts.scripts.size(), 2u);
  EXPECT_EQ(facts.scripts.front(), tree_.root() + "/bin/outer");
  EXPECT_TRUE(facts.elf.is_elf);
  EXPECT_FALSE(facts.is_shell);
}

TEST_F(ProbeProgramTest, NamesTheScriptWhoseInterpreterIsMissing) {
  Script("bin/launch", "#!/no/such/python\n");
  EXPECT_EQ(Probe("launch").error,
            tree_.root() + "/bin/launch asks for /no/such/python: No such file or directory");
}

TEST_F(ProbeProgramTest, AScriptThatStartsItselfEnds) {
  Script("bin/circle", "#!" + tree_.root() + "/bin/circle\n");
  EXPECT_FALSE(Probe("circle").elf.is_elf);
}

TEST_F(ProbeProgramTest, AScriptOfAShellIsKnown) {
  Script("bin/job", "#!/bin/sh\npython train.py\n");
  EXPECT_TRUE(Probe("job").is_shell);
  EXPECT_TRUE(ProbeProgram({"/bin/sh", "job"}, {}).is_shell);
}

TEST_F(ProbeProgramTest, ASetuidProgramOfAnotherUserChangesTheUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to make a program of another user";
  std::filesystem::copy_file("/bin/sleep", tree_.root() + "/nap");
  const std::string nap = tree_.root() + "/nap";
  ASSERT_EQ(chmod(nap.c_str(), 04755), 0);
  EXPECT_FALSE(Probe(nap).changes_user);  // this user's own
  ASSERT_EQ(chown(nap.c_str(), 7, 7), 0);
  ASSERT_EQ(chmod(nap.c_str(), 04755), 0);
  EXPECT_TRUE(Probe(nap).changes_user);
}

TEST_F(ProbeProgramTest, PythonTellsItsFolders) {
  if (access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "no /usr/bin/python3";
  const ProgramFacts facts =
      ProbeProgram({"/usr/bin/python3", "train.py"}, {{"PYTHONPATH", tree_.root()}});
  EXPECT_TRUE(facts.is_python);
  EXPECT_EQ(facts.python, Attempt::kWorked);
  EXPECT_NE(std::find(facts.python_folders.begin(), facts.python_folders.end(), tree_.root()),
            facts.python_folders.end());
}

TEST_F(ProbeProgramTest, FindsTheNcclOfPythonsPackageWithItsRelease) {
  tree_.Write("site/nvidia/nccl/lib/libnccl.so.2", "");
  tree_.Write("site/nvidia_nccl_cu12-2.27.3.dist-info/METADATA", "");
  const NcclFacts facts = FindNccl(Python(), {}, files_);
  ASSERT_EQ(facts.files.size(), 1u);
  EXPECT_EQ(facts.files[0].version, 22703);
  EXPECT_EQ(facts.files[0].origin, kPythonPackage);
  EXPECT_EQ(facts.inside, "");
}

TEST_F(ProbeProgramTest, TheSearchPathComesBeforeThePackageAndTheSystemLast) {
  tree_.Write("site/nvidia/nccl/lib/libnccl.so.2", "");
  tree_.Write("old/libnccl.so.2.18.5", "");
  std::filesystem::create_symlink("libnccl.so.2.18.5", tree_.root() + "/old/libnccl.so.2");
  tree_.Write("usr/lib/libnccl.so.2", "");
  const NcclFacts facts = FindNccl(Python(), {{"LD_LIBRARY_PATH", tree_.root() + "/old"}}, files_);
  ASSERT_EQ(facts.files.size(), 3u);
  EXPECT_EQ(facts.files[0].origin, kSearchPath);
  EXPECT_EQ(facts.files[0].version, 21805);
  EXPECT_EQ(facts.files[1].origin, kPythonPackage);
  EXPECT_EQ(facts.files[2].origin, kSystem);
}

TEST_F(ProbeProgramTest, SearchesRpathFirstAndRunpathSecond) {
  for (const char* folder : {"first", "second", "third"}) {
    tree_.Write(std::string(folder) + "/libnccl.so.2", "");
  }
  ProgramFacts program = Python();
  program.elf.is_elf = true;
  program.elf.rpath = {tree_.root() + "/first"};
  program.elf.runpath = {tree_.root() + "/third"};
  const NcclFacts facts =
      FindNccl(program, {{"LD_LIBRARY_PATH", tree_.root() + "/second"}}, files_);
  ASSERT_EQ(facts.files.size(), 3u);
  EXPECT_EQ(facts.files[0].path, std::filesystem::canonical(tree_.root() + "/first/libnccl.so.2"));
  EXPECT_EQ(facts.files[2].path, std::filesystem::canonical(tree_.root() + "/third/libnccl.so.2"));
}

TEST_F(ProbeProgramTest, AnNcclInsideTheProgramIsNamed) {
  ProgramFacts program;
  program.path = "/job/train";
  program.elf.is_elf = program.elf.has_nccl = true;
  EXPECT_EQ(FindNccl(program, {}, files_).inside, "/job/train");
}

}  // namespace
}  // namespace rollcall::doctor

// SPDX-License-Identifier: Apache-2.0
#include "cli/run/script_name.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_split.h"

namespace rollcall {
namespace {

struct Case {
  const char* name;
  const char* line;
  const char* script;
};

const Case kCases[] = {
    {"a_script", "python train.py --lr 1", "train"},
    {"a_path", "/opt/venv/bin/python3 -u /home/a/train.py", "train"},
    {"a_launcher", "torchrun --nproc-per-node 8 train.py --model tiny.py", "train"},
    {"a_module", "python -m pkg.train --lr 1", "pkg.train"},
    {"a_module_of_a_launcher", "torchrun --nproc-per-node 8 -m pkg.train", "pkg.train"},
    {"a_launcher_as_a_module", "python -m torch.distributed.run --nproc-per-node 8 train.py",
     "train"},
    {"a_launcher_in_a_launcher", "srun -N 2 python -m pkg.train", "pkg.train"},
    {"a_flag_of_srun", "srun -m block python train.py", "train"},
    {"a_shell_script", "bash ./start.sh", "start"},
    {"a_program", "/x/solver --steps 9", "solver"},
    {"a_program_with_a_dot", "./a.out", "a.out"},
    {"a_command_of_a_shell", "bash -c true", "bash"},
    {"a_module_flag_without_a_module", "python -m", "python"},
};

class ScriptNameTest : public testing::TestWithParam<Case> {};

TEST_P(ScriptNameTest, IsWhatAPersonCallsTheJob) {
  EXPECT_EQ(ScriptName(absl::StrSplit(GetParam().line, ' ')), GetParam().script);
}

INSTANTIATE_TEST_SUITE_P(Lines, ScriptNameTest, testing::ValuesIn(kCases),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(ScriptNameTest, TheTextForAShellDoesNotNameTheJob) {
  EXPECT_EQ(ScriptName({"bash", "-c", "HF_TOKEN=x python train.py"}), "bash");
  EXPECT_EQ(ScriptName({"env", "START=x/train.py", "python", "eval.py"}), "eval");
}

TEST(ScriptNameTest, OfAnEmptyCommandIsEmpty) { EXPECT_EQ(ScriptName({}), ""); }

}  // namespace
}  // namespace rollcall

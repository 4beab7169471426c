// SPDX-License-Identifier: Apache-2.0
// What of a command line leaves the host.
#include "security/harmless_arguments.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "security/harmless_flags.h"

namespace rollcall {
namespace {

using Arguments = std::vector<std::string>;

std::string Send(const Arguments& arguments, SendArguments send = SendArguments::kListed) {
  return CommandToSend(absl::StrJoin(arguments, "\n"), send, *DefaultRedactor());
}

struct Case {
  const char* name;
  Arguments arguments;
  const char* sent;
};

const Case kCases[] = {
    {"program_and_script",
     {"/usr/bin/python3.11", "-u", "/home/me/train.py", "data.bin"},
     "/usr/bin/python3.11 -u /home/me/train.py [8 characters]"},
    {"module", {"python", "-m", "pkg.train", "--lr", "3e-4"}, "python -m pkg.train --lr 3e-4"},
    {"code_stays", {"python3", "-c", "login('hunter2')"}, "python3 -c [16 characters]"},
    {"code_of_a_shell", {"bash", "-ec", "curl -u a:b x"}, "bash -e[1 character] [13 characters]"},
    {"shell_script", {"bash", "-e", "run.sh", "hunter2"}, "bash -e run.sh [7 characters]"},
    {"code_of_a_login_shell",
     {"bash", "--login", "-c", "./run.sh hunter2"},
     "bash --login -c [16 characters]"},
    {"code_behind_a_starter",
     {"srun", "--comment", "x", "-J", "n", "./login hunter2.sh"},
     "srun --comment [1 character] -J [1 character] [18 characters]"},
    {"arguments_of_a_script_that_comes_by_the_input",
     {"bash", "-s", "--", "hunter2"},
     "bash -s -- [7 characters]"},
    {"a_switch_of_python_is_no_input", {"python3", "-s", "train.py"}, "python3 -s train.py"},
    {"values_that_are_too_long_for_their_flag",
     {"./train", "--rank=4111111111111111", "--strategy=correct-horse-battery-staple"},
     "./train --rank=[16 characters] --strategy=[28 characters]"},
    {"empty_argument", {"./train", "", "x"}, "./train [0 characters] [1 character]"},
    {"an_unknown_program_has_no_script", {"./train", "hunter2"}, "./train [7 characters]"},
    {"listed_values",
     {"./train", "--tensor-model-parallel-size", "8", "--micro_batch_size=4", "--dtype", "bfloat16",
      "--master-addr=node-17", "-tp", "2", "--nnodes=1:4"},
     "./train --tensor-model-parallel-size 8 --micro_batch_size=4 --dtype bfloat16 "
     "--master-addr=node-17 -tp 2 --nnodes=1:4"},
    {"values_of_other_flags",
     {"./train", "--pin", "1234", "--name", "run-7", "--id=42", "--seed", "17"},
     "./train --pin [4 characters] --name [5 characters] --id=[2 characters] --seed [2 characters]"},
    {"a_listed_value_of_another_form",
     {"./train", "--batch-size", "hunter2", "--port=s3cr3t!", "--host", "u:p@h"},
     "./train --batch-size [7 characters] --port=[7 characters] --host [5 characters]"},
    {"secrets_with_dashes",
     {"./train", "--password", "-hunter2", "--api-key", "--hunter", "--lr", "1"},
     "./train --password [8 characters] --api-key [8 characters] --lr 1"},
    {"what_only_looks_like_a_flag",
     {"mysql", "-phunter2", "--SECRETWORD", "--x9Kq27LmZ", "-", "-7", "-v", "--a b"},
     "mysql -p[7 characters] --[10 characters] --[9 characters] - [2 characters] -v "
     "--[3 characters]"},
    {"curl", {"curl", "-u", "me:hunter2", "https://x/"}, "curl -u [10 characters] [10 characters]"},
    {"hydra",
     {"python", "train.py", "db.password=x", "+model=y", "nnodes=2"},
     "python train.py [13 characters] [8 characters] nnodes=2"},
    {"torchrun",
     {"torchrun", "--standalone", "--nproc-per-node", "8", "--rdzv-id", "j", "train.py", "--token",
      "hunter2"},
     "torchrun --standalone --nproc-per-node 8 --rdzv-id [1 character] train.py --token "
     "[7 characters]"},
    {"torchrun_as_a_script_with_a_module",
     {"/venv/bin/python3", "/venv/bin/torchrun", "--nproc_per_node=2", "-m", "pkg.train", "x"},
     "/venv/bin/python3 /venv/bin/torchrun --nproc_per_node=2 -m pkg.train [1 character]"},
    {"torchrun_as_a_module",
     {"python", "-m", "torch.distributed.run", "--nnodes", "2", "t.py"},
     "python -m torch.distributed.run --nnodes 2 t.py"},
    {"an_unknown_flag_of_a_launcher_may_have_a_value",
     {"torchrun", "--unknown", "hunter2", "train.py"},
     "torchrun --unknown [7 characters] train.py"},
    {"behind_a_flag_without_a_value_the_script_is_not_known",
     {"torchrun", "--unknown", "train.py", "hunter2"},
     "torchrun --unknown [8 characters] [7 characters]"},
    {"clustered_flags_of_python",
     {"python", "-uc", "code", "hunter2"},
     "python -u[1 character] [4 characters] [7 characters]"},
    {"clustered_flags_with_a_module",
     {"python", "-um", "pkg", "hunter2"},
     "python -u[1 character] [3 characters] [7 characters]"},
    {"clustered_flags_of_a_shell",
     {"sh", "-euc", "curl", "hunter2"},
     "sh -e[2 characters] [4 characters] [7 characters]"},
    {"env_with_flags",
     {"env", "-u", "HOME", "python", "t.py"},
     "env -u [4 characters] python t.py"},
    {"an_unknown_command", {"vllm", "hunter2"}, "vllm [7 characters]"},
    {"accelerate",
     {"accelerate", "launch", "--multi_gpu", "--num_processes", "2", "train.py"},
     "accelerate launch --multi_gpu --num_processes 2 train.py"},
    {"deepspeed",
     {"deepspeed", "--num_gpus=8", "--hostfile", "hosts", "train.py", "--zero-stage", "3"},
     "deepspeed --num_gpus=8 --hostfile [5 characters] train.py --zero-stage 3"},
    {"mpirun",
     {"mpirun.openmpi", "-np", "4", "--mca", "btl", "tcp,self", "-x", "TOKEN=hunter2", "./train",
      "hunter2"},
     "mpirun.openmpi -np 4 --mca [3 characters] [8 characters] -x [13 characters] ./train "
     "[7 characters]"},
    {"srun",
     {"srun", "-N", "2", "--ntasks-per-node=8", "python", "t.py"},
     "srun -N 2 --ntasks-per-node=8 python t.py"},
    {"env", {"env", "TOKEN=hunter2", "python", "t.py"}, "env [13 characters] python t.py"},
    {"vllm",
     {"python", "/bin/vllm", "serve", "org/model", "--tensor-parallel-size", "4", "--api-key", "k"},
     "python /bin/vllm serve [9 characters] --tensor-parallel-size 4 --api-key [1 character]"},
    {"a_secret_in_the_path_of_a_script_with_a_shape",
     {"python", "https://me:hunter2@host/train.py"},
     "python https://me:[redacted]@host/train.py"},
    {"a_title_that_the_process_gave_itself", {"ray::train hunter2"}, "ray::train [7 characters]"},
    {"nothing", {}, ""},
};

class HarmlessArgumentsTest : public testing::TestWithParam<Case> {};

TEST_P(HarmlessArgumentsTest, Sends) { EXPECT_EQ(Send(GetParam().arguments), GetParam().sent); }

INSTANTIATE_TEST_SUITE_P(CommandLines, HarmlessArgumentsTest, testing::ValuesIn(kCases),
                         [](const auto& row) { return std::string(row.param.name); });

// Whatever an unlisted flag is called, and however its value is given.
TEST(HarmlessArgumentsTest, NoSecretPassesAsAValueOrAnArgument) {
  const std::string secret = "hunter2";
  for (const char* name :
       {"x", "u", "pass", "wandb-key", "cookie", "unknown", "header", "b", "e"}) {
    for (const Arguments& arguments : {
             Arguments{"python", "t.py", absl::StrCat("--", name), secret},
             {"python", absl::StrCat("-", name, "m"), "pkg", secret},
             {"bash", absl::StrCat("-", name, "c"), "code", secret},
             {"torchrun", absl::StrCat("--", name), "t.py", secret},
             {"python", "t.py", absl::StrCat("--", name, "=", secret)},
             {"python", "t.py", absl::StrCat("-", name), secret},
             {"python", "t.py", absl::StrCat("-", name, secret)},
             {"python", "t.py", absl::StrCat("-", name, "=", secret)},
             {"python", "t.py", absl::StrCat("+", name, "=", secret)},
             {"python", "t.py", absl::StrCat(name, ":", secret)},
             {"torchrun", absl::StrCat("--", name), secret, "t.py"},
             {"torchrun", absl::StrCat("--", name, "=", secret), "t.py"},
             {"./binary", absl::StrCat("-", name), secret, "train"},
             {"sh", "-c", absl::StrCat(name, "=", secret)},
         }) {
      EXPECT_FALSE(absl::StrContains(Send(arguments), secret)) << absl::StrJoin(arguments, " ");
    }
  }
}

TEST(HarmlessArgumentsTest, EachFlagIsListedOnceInOneSpelling) {
  std::set<std::string> names;
  for (const HarmlessFlag& flag : kHarmlessFlags) {
    const std::string name = flag.name;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(absl::AsciiStrToLower(absl::StrReplaceAll(name, {{"_", "-"}})), name);
  }
  EXPECT_GE(names.size(), 100u);
}

TEST(HarmlessArgumentsTest, AUsersPatternHidesPartsOfWhatIsSent) {
  const auto redactor = Redactor::Create({"node-[0-9]+"});
  ASSERT_TRUE(redactor.ok());
  EXPECT_EQ(CommandToSend("python\nt.py\n--host\nnode-17", SendArguments::kListed, **redactor),
            "python t.py --host [redacted]");
}

TEST(HarmlessArgumentsTest, AllSendsAllButWhatLooksLikeASecret) {
  EXPECT_EQ(
      Send({"python", "t.py", "data.bin", "--name=run 7", "--password", "two words", "--pw=a'b",
            "--max-tokens", "9", "https://me:x@h/"},
           SendArguments::kAll),
      "python t.py data.bin '--name=run 7' --password [redacted] --pw=[redacted] --max-tokens "
      "9 https://me:[redacted]@h/");
}

}  // namespace
}  // namespace rollcall

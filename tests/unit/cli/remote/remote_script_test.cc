// SPDX-License-Identifier: Apache-2.0
// Runs the line in a real shell. The program that it is sent is a script of this test.
#include "cli/remote/remote_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "base/read_file.h"
#include "cli/remote/remote_child.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

using testing::HasSubstr;

constexpr char kToken[] = "00112233445566778899aabbccddeeff";
constexpr char kVersion[] = "rollcall 9.9 (commit it's)";

class RemoteScriptTest : public testing::Test {
 protected:
  // As if `program` were this program.
  RemoteLook Run(const std::string& program, const std::vector<std::string>& arguments,
                 uint64_t claimed_bytes = 0) {
    RemoteScript script;
    script.token = kToken;
    script.version = kVersion;
    script.program_bytes = claimed_bytes != 0 ? claimed_bytes : program.size();
    script.arguments = arguments;
    const std::string path = absl::StrCat("PATH=", tree_.root(), "/bin:/usr/bin:/bin");
    const std::string folder = absl::StrCat("TMPDIR=", tree_.root());
    return TakeRemoteLook({"env", path, folder, "/bin/sh", "-c", ScriptLine(script)}, kToken,
                          program, MonotonicNs() + 20 * kSecond, &budget_);
  }

  bool IsLeft() const { return std::filesystem::exists(Folder()); }
  std::string Folder() const { return absl::StrCat(tree_.root(), "/rollcall-", kToken); }

  // Prints a look of which this text is the host: field 1, and its length in two bytes.
  static std::string Program(const std::string& shell) {
    return absl::StrCat("#!/bin/sh\ntext=\"", shell, "\"\nsize=${#text}\nprintf 'rollcall-look ",
                        kToken,
                        " %d\\n' $((size + 3))\nprintf \"\\\\012\\\\$(printf %o $((size % 128 + "
                        "128)))\\\\$(printf %o $((size / 128)))\"\nprintf %s \"$text\"\n");
  }
  ByteBudget budget_{1 << 20};

  const TemporaryTree tree_;
};

TEST_F(RemoteScriptTest, TheProgramIsSentRunAndRemoved) {
  const RemoteLook look = Run(Program("$0 $# $1 $2 $(stat -c %a $(dirname $0) $0 | xargs)"),
                              {"diagnose", "it's $(reboot) \"here\""});
  EXPECT_EQ(look.error, "");
  EXPECT_EQ(look.look.host(),
            absl::StrCat(Folder(), "/rollcall 2 diagnose it's $(reboot) \"here\" 700 700"));
  EXPECT_FALSE(IsLeft());
}

TEST_F(RemoteScriptTest, ItIsTheProbeOfItsOwnToo) {
  EXPECT_EQ(Run(Program("$(readlink -f $(dirname $0)/rollcall-probe)"), {}).look.host(),
            Folder() + "/rollcall");
}

TEST_F(RemoteScriptTest, AnInstalledProgramOfThisVersionIsUsed) {
  tree_.Write("bin/rollcall",
              absl::StrCat("#!/bin/sh\nif [ \"$1\" = --version ]; then echo \"", kVersion,
                           "\"; exit; fi\n", Program("installed $1").substr(10)));
  std::filesystem::permissions(tree_.root() + "/bin/rollcall", std::filesystem::perms::owner_all);
  EXPECT_EQ(Run(Program("sent"), {"diagnose"}).look.host(), "installed diagnose");
  EXPECT_FALSE(IsLeft());
}

TEST_F(RemoteScriptTest, AnInstalledProgramOfAnotherVersionIsNot) {
  tree_.Write("bin/rollcall", "#!/bin/sh\necho rollcall 1.0\n");
  std::filesystem::permissions(tree_.root() + "/bin/rollcall", std::filesystem::perms::owner_all);
  EXPECT_EQ(Run(Program("sent"), {}).look.host(), "sent");
}

TEST_F(RemoteScriptTest, AProgramThatDoesNotArriveWholeIsNotRun) {
  const RemoteLook look = Run(Program("sent"), {}, 1'000'000);
  EXPECT_EQ(look.error, "the program did not arrive whole");
  EXPECT_FALSE(IsLeft());
}

TEST_F(RemoteScriptTest, ReportsTheErrorOfTheProgram) {
  const RemoteLook look = Run("#!/bin/sh\necho first >&2\necho 'no \x1b[2J' >&2\nexit 3\n", {});
  EXPECT_EQ(look.error, "no ?[2J");
  EXPECT_FALSE(IsLeft());
  EXPECT_EQ(Run("#!/bin/sh\nexit 3\n", {}).error, "env ended with 3");
}

// The next of the usual folders is taken.
TEST_F(RemoteScriptTest, AFolderThatIsThereAlreadyIsNotUsed) {
  std::filesystem::create_directory(Folder());
  const RemoteLook look = Run(Program("$(dirname $0)"), {});
  EXPECT_EQ(look.look.host(), absl::StrCat("/tmp/rollcall-", kToken));
  EXPECT_TRUE(IsLeft());
  EXPECT_FALSE(std::filesystem::exists(look.look.host()));
}

TEST(ShellQuotedTest, AShellGivesItBack) {
  const std::string text = "a'b \"c\" $d `e` \\ !f ''";
  const CommandOutput output =
      RunToEnd({"/bin/sh", "-c", "printf %s " + ShellQuoted(text)}, MonotonicNs() + 10 * kSecond);
  EXPECT_EQ(output.out, text);
  EXPECT_EQ(output.error, "");
}

}  // namespace
}  // namespace rollcall

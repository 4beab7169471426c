// SPDX-License-Identifier: Apache-2.0
#include "service/service_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/strings/str_replace.h"

namespace rollcall {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A program with one flag of each kind.
struct Program {
  Program() : app("A program.", "program") {
    app.add_option("--listen", listen, "the address")
        ->envname("TEST_LISTEN")
        ->capture_default_str();
    app.add_option("--max-jobs", jobs, "the limit")
        ->capture_default_str()
        ->check(CLI::Range(1, 100));
    app.add_option("--keep", keep, "seconds")->capture_default_str();
    app.add_option("--grant", grants, "a role");
    app.add_flag("--insecure", insecure, "no questions");
    app.set_version_flag("--version", "1");
    AddServiceFlags(&app, "/nowhere/program.yaml", &service);
  }
  absl::Status Parse(std::vector<std::string> words) {
    std::vector<const char*> argv = {"program"};
    for (const std::string& word : words) argv.push_back(word.c_str());
    return ParseServiceFlagsAgain(static_cast<int>(argv.size()), argv.data(), &app, service);
  }
  std::string Apply(const std::string& text) {
    return std::string(ApplySettings(text, "a.yaml", &app).message());
  }

  CLI::App app;
  ServiceFlags service;
  std::string listen = "default";
  int jobs = 10, keep = 5;
  std::vector<std::string> grants;
  bool insecure = false;
};

TEST(ServiceFlagsTest, AFileSetsFlagsOfEachKind) {
  Program program;
  ASSERT_TRUE(program.Parse({}).ok());
  EXPECT_EQ(program.Apply("listen: file\nmax-jobs: 7\ngrant: [a, b]\ninsecure: true\n"), "");
  EXPECT_EQ(program.listen, "file");
  EXPECT_EQ(program.jobs, 7);
  EXPECT_THAT(program.grants, ElementsAre("a", "b"));
  EXPECT_TRUE(program.insecure);
}

TEST(ServiceFlagsTest, CommandLineComesBeforeEnvironmentBeforeFileBeforeDefault) {
  const std::string text = "listen: file\n";
  setenv("TEST_LISTEN", "environment", 1);
  Program both, environment;
  ASSERT_TRUE(both.Parse({"--listen=command"}).ok());
  ASSERT_TRUE(environment.Parse({}).ok());
  unsetenv("TEST_LISTEN");
  EXPECT_EQ(both.Apply(text), "");
  EXPECT_EQ(both.listen, "command");
  EXPECT_EQ(environment.Apply(text), "");
  EXPECT_EQ(environment.listen, "environment");
  Program file;
  ASSERT_TRUE(file.Parse({}).ok());
  EXPECT_EQ(file.listen, "default");
  EXPECT_EQ(file.Apply(text), "");
  EXPECT_EQ(file.listen, "file");
}

TEST(ServiceFlagsTest, EachErrorHasFileAndLineAndSaysWhatToDo) {
  Program program;
  ASSERT_TRUE(program.Parse({}).ok());
  std::string errors = program.Apply(
      "max-job: 3\nmax-jobs: many\ninsecure: perhaps\nlisten: [a]\n"
      "config: b\nxylophone: c\nkeep: long\n");
  // In the words of newer CLI11.
  absl::StrReplaceAll({{"[1 - 100]", "1 to 100"}}, &errors);
  EXPECT_EQ(errors,
            "a.yaml:1: unknown flag \"max-job\"; did you mean \"max-jobs\"?\n"
            "a.yaml:2: max-jobs: Value many not in range 1 to 100\n"
            "a.yaml:3: insecure is true or false, and not \"perhaps\"\n"
            "a.yaml:4: listen takes one value, and this is a list\n"
            "a.yaml:5: --config belongs on the command line and not into this file\n"
            "a.yaml:6: unknown flag \"xylophone\"; type  program --help\n"
            "a.yaml:7: keep: \"long\" is not a number");
}

TEST(ServiceFlagsTest, AValueOutOfRangeIsRefused) {
  Program program;
  ASSERT_TRUE(program.Parse({}).ok());
  EXPECT_THAT(program.Apply("max-jobs: 101\n"), HasSubstr("a.yaml:1: max-jobs: Value 101 not in"));
}

TEST(ServiceFlagsTest, TheDefaultFileMayBeMissingAndANamedOneMayNot) {
  Program without;
  EXPECT_TRUE(without.Parse({}).ok());
  EXPECT_EQ(ConfigFile(without.service), "");
  Program none;
  EXPECT_TRUE(none.Parse({"--config=none"}).ok());
  EXPECT_EQ(ConfigFile(none.service), "");
  Program named;
  const absl::Status status = named.Parse({"--config=/nowhere/other.yaml"});
  EXPECT_EQ(status.message(),
            "cannot read /nowhere/other.yaml: No such file or directory\n"
            "  to start without it:  program --config=none");
}

TEST(ServiceFlagsTest, KnowsWhichFlagsHaveChanged) {
  Program before, after;
  ASSERT_TRUE(before.Parse({"--grant=a"}).ok());
  ASSERT_TRUE(after.Parse({"--grant=a"}).ok());
  EXPECT_THAT(ChangedFlags(ValuesOf(before.app), ValuesOf(after.app)), IsEmpty());
  ASSERT_EQ(after.Apply("max-jobs: 7\ninsecure: true\ngrant: b\nlisten: default\n"), "");
  EXPECT_THAT(ChangedFlags(ValuesOf(before.app), ValuesOf(after.app)),
              ElementsAre("insecure", "max-jobs"));
}

TEST(ServiceFlagsTest, TheExampleHasEachFlagWithItsDefault) {
  Program program;
  const std::string text = ExampleSettings(program.app, "A heading.", {{"listen", "A remark."}});
  EXPECT_THAT(text, HasSubstr("# A heading.\n\n"));
  EXPECT_THAT(text, HasSubstr("\n# the address\n# A remark.\n#listen: default\n"));
  EXPECT_THAT(text, HasSubstr("\n#max-jobs: 10\n"));
  EXPECT_THAT(text, HasSubstr("# One value, or a list.\n#grant: \"\"\n"));
  EXPECT_THAT(text, HasSubstr("\n#insecure: false\n"));
  EXPECT_THAT(text, Not(HasSubstr("config")));
  EXPECT_THAT(text, Not(HasSubstr("version")));
}

// What the example shows must be what a person can switch on by removing the #.
TEST(ServiceFlagsTest, TheExampleIsUsableWithoutItsSigns) {
  Program program;
  ASSERT_TRUE(program.Parse({}).ok());
  std::string text;
  for (const auto& line : CLI::detail::split(ExampleSettings(program.app, "", {}), '\n')) {
    if (line.size() > 1 && line[0] == '#' && line[1] != ' ') text += line.substr(1) + "\n";
  }
  EXPECT_EQ(program.Apply(text), "");
  EXPECT_EQ(program.listen, "default");
  EXPECT_EQ(program.jobs, 10);
  EXPECT_FALSE(program.insecure);
}

}  // namespace
}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
#include "security/token_edit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rollcall {
namespace {

using ::testing::HasSubstr;

TokenEntry MakeEntry(const std::string& name, char digit) {
  TokenEntry entry;
  entry.name = name;
  entry.tenants = {"default"};
  entry.expires_s = 1'826'928'000;
  entry.sha256 = std::string(64, digit);
  return entry;
}

const std::string kOnes(64, '1');    // NOLINT
const std::string kTwos(64, '2');    // NOLINT
const std::string kThrees(64, '3');  // NOLINT

// Odd layouts that people write.
const std::string kByHand =  // NOLINT
    "# keep: who has which\ntokens:   # list\n\n"
    "# of the dashboards\n"
    "- role: viewer   # reads\n  name: grafana\n\n  # none\n  expires: never\n  sha256: " +
    kOnes +
    "\n"
    "# of the robots\n"
    "-\n  name: ci\n  role: operator\n  expires: never\n  sha256: '" +
    kTwos +
    "'\n"
    "\n# the end";

TEST(TokenEditTest, AnEmptyTextBecomesATokenFile) {
  EXPECT_EQ(*AppendToken("", MakeEntry("ci", '1')),
            "tokens:\n"
            "  - name: \"ci\"\n    role: viewer\n    tenants: [\"default\"]\n"
            "    expires: 2027-11-23T00:00:00Z\n    sha256: \"" +
                kOnes + "\"\n");
  EXPECT_THAT(*AppendToken("# mine\n", MakeEntry("ci", '1')), HasSubstr("# mine\ntokens:\n  - "));
  EXPECT_THAT(*AppendToken("tokens:\n", MakeEntry("ci", '1')), HasSubstr("tokens:\n  - name"));
}

TEST(TokenEditTest, AnAppendedEntryReadsBackAndKeepsTheRest) {
  TokenEntry agent = MakeEntry("on", '3');  // a name that YAML could take for a truth value
  agent.role = Role::kAgent;
  agent.hosts = {"*.nodes.example", "*"};
  agent.tenants = {"*", "123"};
  const auto text = AppendToken(kByHand, agent);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->substr(0, kByHand.size()), kByHand);
  const auto entries = ParseTokens(*text);
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[2].hosts, agent.hosts);
  EXPECT_EQ((*entries)[2].tenants, agent.tenants);
  EXPECT_EQ((*entries)[2].expires_s, agent.expires_s);
}

TEST(TokenEditTest, ASecondTokenOfANameIsRefused) {
  const auto text = AppendToken(kByHand, MakeEntry("ci", '3'));
  EXPECT_EQ(text.status().code(), absl::StatusCode::kAlreadyExists);
}

TEST(TokenEditTest, ALayoutThatCannotGrowIsLeftAlone) {
  const std::string flow = "tokens: [{name: a, role: viewer, expires: never, sha256: " + kOnes +
                           "}, {name: c, role: viewer, expires: never, sha256: " + kThrees + "}]\n";
  EXPECT_EQ(AppendToken(flow, MakeEntry("b", '2')).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(RemoveToken(flow, "a").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(AppendToken("tokens: [\n", MakeEntry("b", '2')).ok());
}

TEST(TokenEditTest, ARemovedEntryTakesItsLinesOnly) {
  const auto without_first = RemoveToken(kByHand, "grafana");
  ASSERT_TRUE(without_first.ok()) << without_first.status();
  EXPECT_EQ(*without_first,
            "# keep: who has which\ntokens:   # list\n\n"
            "# of the dashboards\n"
            "# of the robots\n"
            "-\n  name: ci\n  role: operator\n  expires: never\n  sha256: '" +
                kTwos +
                "'\n"
                "\n# the end");
  const auto without_last = RemoveToken(kByHand, "ci");
  ASSERT_TRUE(without_last.ok()) << without_last.status();
  EXPECT_THAT(*without_last, HasSubstr(kOnes + "\n# of the robots\n\n# the end"));
}

TEST(TokenEditTest, AppendAndRemoveLeaveTheTextAsItWas) {
  const std::string text = kByHand + "\n";
  const auto longer = AppendToken(text, MakeEntry("new", '3'));
  ASSERT_TRUE(longer.ok()) << longer.status();
  EXPECT_EQ(*RemoveToken(*longer, "new"), text);
}

TEST(TokenEditTest, TheLastEntryLeavesAnEmptyList) {
  const auto text = RemoveToken(*AppendToken("", MakeEntry("ci", '1')), "ci");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "tokens:\n");
  EXPECT_TRUE(AppendToken(*text, MakeEntry("ci", '1')).ok());
}

TEST(TokenEditTest, AnUnknownNameIsNotFound) {
  EXPECT_EQ(RemoveToken(kByHand, "nobody").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(RemoveToken("", "nobody").status().code(), absl::StatusCode::kNotFound);
}

TEST(TokenEditTest, WindowsLineEndsStay) {
  const std::string text =
      "tokens:\r\n  - name: a\r\n    role: viewer\r\n    expires: never\r\n    sha256: " + kOnes +
      "\r\n  - name: b\r\n    role: viewer\r\n    expires: never\r\n    sha256: " + kTwos + "\r\n";
  const auto removed = RemoveToken(text, "a");
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_EQ(removed->find(kOnes), std::string::npos);
  EXPECT_THAT(*removed, HasSubstr("  - name: b\r\n"));
}

}  // namespace
}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
#include "security/token_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/digest/digest.h"

namespace rollcall {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string Digest(char digit) { return std::string(64, digit); }

std::string Entry(const std::string& name, const std::string& sha256) {
  return absl::StrCat("  - name: ", name,
                      "\n    role: viewer\n    expires: never\n    sha256: ", sha256, "\n");
}

std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(TokenListTest, AnEntryHasAllThatATokenMayDo) {
  const auto entries = ParseTokens(
      "# ours\ntokens:\n"
      "  - name: ci\n    role: viewer\n    tenants: [a, b]\n    hosts: []\n"
      "    expires: 2027-11-23T00:00:00Z\n    sha256: " +
      Digest('A') +
      "\n"
      "  - {name: agents, role: agent, hosts: ['*'], expires: never, sha256: '" +
      Digest('1') + "'}\n");
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 2u);
  const TokenEntry& ci = (*entries)[0];
  EXPECT_EQ(ci.name, "ci");
  EXPECT_EQ(ci.role, Role::kViewer);
  EXPECT_THAT(ci.tenants, ElementsAre("a", "b"));
  EXPECT_THAT(ci.hosts, IsEmpty());
  EXPECT_EQ(ci.expires_s, 1'826'928'000);
  EXPECT_EQ(ci.sha256, Digest('a'));
  EXPECT_EQ(ci.line, 2u);
  const TokenEntry& agents = (*entries)[1];
  EXPECT_THAT(agents.tenants, ElementsAre("default"));
  EXPECT_THAT(agents.hosts, ElementsAre("*"));
  EXPECT_EQ(agents.expires_s, 0);
}

TEST(TokenListTest, AFileWithoutTokensHasNone) {
  for (const char* text : {"", "# nothing\n", "tokens:\n", "tokens: []\n"}) {
    const auto entries = ParseTokens(text);
    ASSERT_TRUE(entries.ok()) << text << ": " << entries.status();
    EXPECT_THAT(*entries, IsEmpty());
  }
}

struct BadFile {
  const char* name = "";
  std::string text;
  const char* line;
  const char* why;
};

void PrintTo(const BadFile& row, std::ostream* out) { *out << row.name; }

class BadTokenFileTest : public testing::TestWithParam<BadFile> {};

TEST_P(BadTokenFileTest, TheErrorNamesLineAndReason) {
  const auto entries = ParseTokens(GetParam().text);
  ASSERT_FALSE(entries.ok());
  EXPECT_THAT(std::string(entries.status().message()), StartsWith(GetParam().line));
  EXPECT_THAT(std::string(entries.status().message()), HasSubstr(GetParam().why));
}

const std::string kHead = "tokens:\n  - name: a\n    role: viewer\n    expires: never\n";  // NOLINT

const BadFile kBadFiles[] = {
    {"two_names", "tokens:\n" + Entry("a", Digest('1')) + Entry("a", Digest('2')),
     "line 6:", "second token of the name a"},
    {"two_digests", "tokens:\n" + Entry("a", Digest('1')) + Entry("b", Digest('1')),
     "line 6:", "stands there twice"},
    {"digests_in_other_case", "tokens:\n" + Entry("a", Digest('a')) + Entry("b", Digest('A')),
     "line 6:", "stands there twice"},
    {"key_twice", kHead + "    role: operator\n    sha256: " + Digest('1'),
     "line 5:", "a second role"},
    {"tokens_twice", "tokens: []\ntokens: []\n", "line 2:", "once"},
    {"unknown_key", kHead + "    tennants: [a]\n", "line 5:", "not one of name"},
    {"unknown_top_key", "users: []\n", "line 1:", "the key 'tokens'"},
    {"no_digest", kHead, "line 2:", "no key sha256"},
    {"no_expiry", "tokens:\n  - {name: a, role: viewer, sha256: " + Digest('1') + "}\n",
     "line 2:", "no key expires"},
    {"token_as_digest", kHead + "    sha256: rollcall_secret\n", "line 5:", "64 hex digits"},
    {"bad_role", "tokens:\n  - {name: a, role: root}\n", "line 2:", "the role is not agent"},
    {"bad_name", "tokens:\n  - {name: 'a b'}\n", "line 2:", "a name has"},
    {"bad_time", "tokens:\n  - {name: a, expires: tomorrow}\n", "line 2:", "neither 'never'"},
    {"time_before_1970", "tokens:\n  - {name: a, expires: '1960-01-01T00:00:00Z'}\n",
     "line 2:", "neither 'never'"},
    {"agent_without_host",
     "tokens:\n  - {name: a, role: agent, expires: never, sha256: " + Digest('1') + "}\n",
     "line 2:", "an agent needs hosts"},
    {"viewer_with_host",
     "tokens:\n  - {name: a, role: viewer, hosts: [b], expires: never, sha256: " + Digest('1') +
         "}\n",
     "line 2:", "only an agent"},
    {"tenants_no_list", kHead + "    tenants: a\n", "line 5:", "lists"},
    {"tenant_no_name", kHead + "    tenants: ['a/b']\n", "line 5:", "not a tenant"},
    {"host_no_name", kHead + "    hosts: ['a..b']\n", "line 5:", "not a host"},
    {"nul_byte", std::string("tokens:\n\0", 9), "line 2:", "NUL"},
    {"no_yaml", "tokens: [\n", "line 2:", ""},
    {"a_list", "- a\n", "line 1:", "begins with 'tokens:'"},
    {"an_alias", "tokens: &a [*a]\n", "line 1:", "has no place"},
    {"alias_bomb", "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n", "line 1:", "an anchor"},
    {"deep", Repeat("[", 300'000), "line 1:", "this deep"},
    {"deep_maps", Repeat("{a: ", 100'000), "line 1:", "this deep"},
    {"deep_blocks", Repeat("- ", 300'000), "line 1:", "this deep"},
    {"two_documents", "tokens: []\n---\ntokens: []\n", "line 2:", "second document"},
};

INSTANTIATE_TEST_SUITE_P(All, BadTokenFileTest, testing::ValuesIn(kBadFiles),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(TokenListTest, TheErrorNeverRepeatsASecret) {
  const auto entries = ParseTokens(kHead + "    sha256: rollcall_topsecret\n");
  ASSERT_FALSE(entries.ok());
  EXPECT_EQ(entries.status().message().find("topsecret"), absl::string_view::npos);
}

TEST(TokenListTest, TooManyTokensAreRefused) {
  std::string text = "tokens:\n";
  for (int i = 0; i < 10'001; ++i) text += "- {}\n";
  const auto entries = ParseTokens(text);
  ASSERT_FALSE(entries.ok());
  EXPECT_THAT(std::string(entries.status().message()), HasSubstr("more than 10000"));
}

TEST(TokenListTest, ATokenIsFoundByItsDigest) {
  const std::string token = *NewToken();
  const auto entries =
      ParseTokens("tokens:\n" + Entry("other", Digest('1')) + Entry("ci", Sha256Hex(token)));
  ASSERT_TRUE(entries.ok()) << entries.status();
  const TokenEntry* found = FindToken(*entries, token);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->name, "ci");
  EXPECT_EQ(FindToken(*entries, *NewToken()), nullptr);
  EXPECT_EQ(FindToken(*entries, ""), nullptr);
}

TEST(TokenListTest, NewTokensHaveTheFormAndDiffer) {
  const std::string token = *NewToken();
  EXPECT_EQ(token.size(), 9u + 43u);
  EXPECT_TRUE(IsTokenForm(token));
  EXPECT_NE(token, *NewToken());
}

TEST(TokenListTest, RefusesOtherTextsEvenIfTheFileHasTheirDigest) {
  const auto entries = ParseTokens("tokens:\n" + Entry("weak", Sha256Hex("password")));
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(FindToken(*entries, "password"), nullptr);
  const std::string token = *NewToken();
  for (const std::string& bad :
       {token + "A", token.substr(0, token.size() - 1), token.substr(9), " " + token,
        token.substr(0, 20) + std::string(1, '\0') + token.substr(21), std::string(1 << 20, 'a')}) {
    EXPECT_FALSE(IsTokenForm(bad));
  }
}

TEST(TokenListTest, ATokenExpiresAtItsSecond) {
  TokenEntry entry;
  entry.expires_s = 100;
  EXPECT_FALSE(HasExpired(entry, 99));
  EXPECT_TRUE(HasExpired(entry, 100));
  entry.expires_s = 0;
  EXPECT_FALSE(HasExpired(entry, 1'000'000'000'000));
}

}  // namespace
}  // namespace rollcall

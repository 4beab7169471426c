// SPDX-License-Identifier: Apache-2.0
#include "daemon/ras/ras_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ras_answers.h"

namespace rollcall {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TEST(RasJsonTest, ARankBehindIsNamedWithItsProcess) {
  ASSERT_TRUE(IsRasJson(OneRankBehind()));
  const std::vector<RasFinding> findings = ReadRasJson(OneRankBehind());
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].communicator, 0xa91fu);
  EXPECT_EQ(findings[0].operation, "AllReduce");
  ASSERT_THAT(findings[0].counts, SizeIs(2));
  EXPECT_EQ(findings[0].counts[0].operations, 8812u);
  EXPECT_THAT(findings[0].counts[0].named, SizeIs(3));
  const RasCount& behind = findings[0].counts[1];
  EXPECT_EQ(behind.operations, 8811u);
  ASSERT_THAT(behind.named, SizeIs(1));
  EXPECT_EQ(behind.named[0].rank, 2);
  EXPECT_EQ(behind.named[0].device, 2);
  EXPECT_EQ(behind.named[0].pid, 102);
  EXPECT_EQ(behind.named[0].node, "10.0.0.2");
}

TEST(RasJsonTest, EqualCountsAreNotAFinding) {
  EXPECT_THAT(
      ReadRasJson(JsonAnswer({JsonCommunicator(
          "1", {JsonRank({0, "n", 1, {{"Reduce", 3}}}), JsonRank({1, "n", 2, {{"Reduce", 3}}})})})),
      IsEmpty());
}

TEST(RasJsonTest, RanksWithoutDataAreLostOrDead) {
  const std::vector<RasFinding> findings = ReadRasJson(JsonAnswer({JsonCommunicator(
      "1", {JsonRank({0, "n", 1, {{"Reduce", 3}}})},
      {JsonMissing({1, "n", 2, {}}, false), JsonMissing({2, "n", 3, {}}, true)})}));
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_EQ(findings[0].kind, RasFinding::Kind::kIncomplete);
  ASSERT_THAT(findings[0].lost, SizeIs(1));
  EXPECT_EQ(findings[0].lost[0].rank, 1);
  EXPECT_EQ(findings[1].kind, RasFinding::Kind::kDead);
  ASSERT_THAT(findings[1].lost, SizeIs(1));
  EXPECT_EQ(findings[1].lost[0].pid, 3);
}

TEST(RasJsonTest, WholeCommunicatorsBeforeACutAreRead) {
  const std::string first = JsonCommunicator(
      "1", {JsonRank({0, "n", 1, {{"Reduce", 3}}}), JsonRank({1, "n", 2, {{"Reduce", 2}}})});
  const std::string text = JsonAnswer({first, first});
  for (size_t size = 0; size <= text.size(); ++size) {
    const size_t whole = text.find(first) + first.size();
    const size_t second = text.rfind(first) + first.size();
    EXPECT_THAT(ReadRasJson(text.substr(0, size)), SizeIs((size >= whole) + (size >= second)))
        << size;
  }
}

TEST(RasJsonTest, HostileTextsAreLeftOut) {
  EXPECT_FALSE(IsRasJson("a log of \"nccl_version\""));
  EXPECT_THAT(ReadRasJson(std::string(100'000, '[')), IsEmpty());
  EXPECT_THAT(ReadRasJson(std::string("{\"communicators\": [{\"ranks\": [{\"rank\": {{{")),
              IsEmpty());
  EXPECT_THAT(ReadRasJson("{\"communicators\": {\"a\": {\"ranks\": 3}}}"), IsEmpty());
  EXPECT_THAT(ReadRasJson("{\"communicators\": [[[[{\"rank\": 1}]]]]}"), IsEmpty());
  const std::vector<RasFinding> odd = ReadRasJson(
      "{\"communicators\": [{\"hash\": \"zz\", \"ranks\": ["
      "{\"rank\": -5, \"pid\": 99999999999, \"host\": \"a\\u001b[2J\", "
      "\"collective_counts\": {\"x\\u0007\": 18446744073709551615}},"
      "{\"rank\": 1.5, \"pid\": -1, \"collective_counts\": {\"x\\u0007\": -1}}]}]}");
  ASSERT_THAT(odd, SizeIs(1));
  EXPECT_EQ(odd[0].communicator, 0u);
  EXPECT_EQ(odd[0].operation, "x?");
  for (const RasCount& count : odd[0].counts) {
    for (const RasRank& rank : count.named) EXPECT_EQ(rank.rank, -1);
    for (const RasRank& rank : count.named) EXPECT_TRUE(rank.node.empty() || rank.node == "a?[2J");
  }
}

}  // namespace
}  // namespace rollcall

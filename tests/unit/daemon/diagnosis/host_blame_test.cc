// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/hosts/host_blame.h"

#include <gtest/gtest.h>

#include <string>

namespace rollcall {
namespace {

Verdict Blaming(const std::string& host, Cause cause = Cause::kStalledInFlight) {
  Verdict verdict;
  verdict.cause = cause;
  verdict.certainty = Certainty::kCertain;
  verdict.culprits.resize(2);
  for (Culprit& culprit : verdict.culprits) culprit.host = host;
  return verdict;
}

Verdict WithFact(Verdict verdict, HostFactKind kind, const std::string& host = "node-7") {
  HostEvidence evidence;
  evidence.kind = kind;
  evidence.host = host;
  verdict.host_evidence.push_back(evidence);
  return verdict;
}

TEST(HostBlameTest, AStallBlamesItsHostAndDoesNotCallItBroken) {
  for (const Cause cause : {Cause::kStalledInFlight, Cause::kBlockedBeforeStart}) {
    const auto blame = BlameHost(Blaming("node-7", cause));
    ASSERT_TRUE(blame.has_value());
    EXPECT_EQ(blame->host, "node-7");
    EXPECT_FALSE(blame->is_broken);
  }
}

TEST(HostBlameTest, AMistakeOfTheProgramBlamesNoHost) {
  for (const Cause cause : {Cause::kMissingRank, Cause::kOperationMismatch, Cause::kDeadlock,
                            Cause::kRankExited, Cause::kHostLost}) {
    EXPECT_FALSE(BlameHost(Blaming("node-7", cause)).has_value()) << CauseName(cause);
  }
}

TEST(HostBlameTest, AnErrorOfTheHardwareMakesTheHostBrokenWhateverTheCause) {
  for (const Cause cause : {Cause::kMissingRank, Cause::kStalledInFlight}) {
    const auto blame = BlameHost(WithFact(Blaming("node-7", cause), HostFactKind::kGpuLost));
    ASSERT_TRUE(blame.has_value()) << CauseName(cause);
    EXPECT_TRUE(blame->is_broken);
  }
}

TEST(HostBlameTest, IgnoresErrorsOfOtherHostsAndFactsWithoutErrors) {
  const Verdict stall = Blaming("node-7");
  EXPECT_FALSE(BlameHost(WithFact(stall, HostFactKind::kGpuLost, "node-8"))->is_broken);
  for (const HostFactKind kind :
       {HostFactKind::kCgroupFrozen, HostFactKind::kTaskBlocked, HostFactKind::kDiskFull,
        HostFactKind::kOomKill, HostFactKind::kXid, HostFactKind::kIbRetransmits,
        HostFactKind::kTcpRetransmits}) {
    EXPECT_FALSE(BlameHost(WithFact(stall, kind))->is_broken);
  }
}

TEST(HostBlameTest, AVerdictThatIsOnlyPossibleBlamesNoHost) {
  Verdict verdict = WithFact(Blaming("node-7"), HostFactKind::kGpuLost);
  verdict.certainty = Certainty::kPossible;
  EXPECT_FALSE(BlameHost(verdict).has_value());
  verdict.certainty = Certainty::kLikely;
  EXPECT_TRUE(BlameHost(verdict).has_value());
}

TEST(HostBlameTest, SeveralHostsOrNoneAreNotBlamed) {
  Verdict two = Blaming("node-7");
  two.culprits[1].host = "node-8";
  EXPECT_FALSE(BlameHost(two).has_value());
  Verdict none = Blaming("node-7");
  none.culprits.clear();
  EXPECT_FALSE(BlameHost(none).has_value());
  EXPECT_FALSE(BlameHost(Blaming("")).has_value());
}

}  // namespace
}  // namespace rollcall

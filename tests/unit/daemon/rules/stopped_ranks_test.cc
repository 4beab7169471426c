// SPDX-License-Identifier: Apache-2.0
// Some ranks of a job are kept from running, by a signal, a debugger or a control group, while the
// others wait: wherever that has caught them, they are the culprits.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "job_builder.h"

namespace rollcall {
namespace {

using Ranks = std::vector<int32_t>;

constexpr uint64_t kHalf = 77;

struct Stop {
  const char* name;
  char state;
  const char* wait_channel;
  const char* words;
};

const Stop kStops[] = {
    {"a_signal", 'T', "do_signal_stop", "stopped by a signal (state T)"},
    {"a_debugger", 't', "ptrace_stop", "stopped by a debugger (state t)"},
    {"the_freezer", 'S', "do_freezer_trap", "frozen by its control group"},
};

// Four ranks that have entered calls #24 and #25.
class StoppedRanksTest : public testing::TestWithParam<Stop> {
 protected:
  StoppedRanksTest() {
    job_.Finish(24);
    for (int i = 0; i < 2; ++i) job_.Enter({0, 1, 2, 3}, At(10));
    for (int rank = 0; rank < 4; ++rank) Advance(rank, 24);
  }
  // The GPU of this rank is in the call at `position`.
  void Advance(int rank, uint64_t position) {
    job_.member(rank).finished = position;
    job_.member(rank).started = position + 1;
  }
  void Stop(int rank) {
    job_.process(rank).state = GetParam().state;
    job_.process(rank).wait_channel = GetParam().wait_channel;
  }
  Verdict Judge() const {
    const std::vector<Verdict> verdicts = Diagnose(job_.state, At(70), Limits());
    return verdicts.empty() ? Verdict() : verdicts.front();
  }
  static std::string Words() { return GetParam().words; }

  JobBuilder job_{4};
};

TEST_P(StoppedRanksTest, OneThatAloneHasNotFinishedTheCall) {
  for (const int rank : {0, 2, 3}) Advance(rank, 25);
  Stop(1);
  const Verdict v = Judge();
  EXPECT_EQ(CulpritRanks(v.culprits), Ranks{1});
  EXPECT_EQ(v.waiting_ranks, (Ranks{0, 2, 3}));
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_EQ(v.summary, "rank 1 (node-1, pid 4001) is " + Words() +
                           " and keeps the others waiting in AllReduce #24 on communicator \"dp\"; "
                           "3 ranks have waited 60 s");
}

TEST_P(StoppedRanksTest, TwoInDifferentCalls) {
  for (const int rank : {0, 2, 3}) Advance(rank, 25);
  Stop(1);
  Stop(2);
  const Verdict v = Judge();
  EXPECT_EQ(CulpritRanks(v.culprits), (Ranks{1, 2}));
  EXPECT_EQ(v.waiting_ranks, (Ranks{0, 3}));
  EXPECT_EQ(v.summary.rfind("ranks 1-2 (", 0), 0u) << v.summary;
  EXPECT_NE(v.summary.find("are " + Words() + " and keep the others"), std::string::npos)
      << v.summary;
}

// Its GPU has handed its data to the proxy threads, which do not run.
TEST_P(StoppedRanksTest, OneWhoseGpuHasFinishedTheCall) {
  Advance(1, 26);
  job_.member(1).started = 26;
  job_.member(1).waiting_since_ns = 0;
  Stop(1);
  const Verdict v = Judge();
  EXPECT_EQ(CulpritRanks(v.culprits), Ranks{1});
  EXPECT_EQ(v.waiting_ranks, (Ranks{0, 2, 3}));
  EXPECT_NE(v.summary.find(Words()), std::string::npos) << v.summary;
}

TEST_P(StoppedRanksTest, OneThatAloneHasNotFinishedACallOfAnotherCommunicator) {
  for (const int rank : {0, 2, 3}) Advance(rank, 25);
  Advance(1, 24);
  job_.member(1).started = 24;
  job_.AddCommunicator(kHalf, "tp", {1, 3});
  job_.Finish(4);
  job_.Finish({1}, 1);
  job_.Enter({0}, At(10));
  Stop(0);
  const Verdict v = Judge();
  EXPECT_EQ(CulpritRanks(v.culprits), Ranks{1});
  EXPECT_NE(v.summary.find(Words()), std::string::npos) << v.summary;
}

TEST_P(StoppedRanksTest, TheOtherEndOfAReceiveAndNoOtherRank) {
  JobBuilder job(4);
  job.Finish(24);
  job.Issue(0, Recv(1), At(10));
  job.Issue(1, Send(0), At(10));
  job.CompleteP2p({1});
  for (const int rank : {1, 2}) {
    job.process(rank).state = GetParam().state;
    job.process(rank).wait_channel = GetParam().wait_channel;
  }
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(70), Limits());
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), Ranks{1});
  EXPECT_EQ(verdicts[0].waiting_ranks, Ranks{0});
  EXPECT_EQ(verdicts[0].summary.rfind("rank 1 is " + Words(), 0), 0u) << verdicts[0].summary;
}

TEST_P(StoppedRanksTest, AllOfThemAreNotAHangUnlessADebuggerDoesIt) {
  for (const int rank : {0, 2, 3}) Advance(rank, 25);
  for (int rank = 0; rank < 4; ++rank) Stop(rank);
  EXPECT_EQ(Diagnose(job_.state, At(70), Limits()).empty(), GetParam().state != 't');
}

INSTANTIATE_TEST_SUITE_P(Rules, StoppedRanksTest, testing::ValuesIn(kStops),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
// What the states of transfers add to a verdict.
#include "daemon/diagnosis/network/network_verdict.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "daemon/diagnosis/diagnose.h"
#include "daemon/words/sentences.h"
#include "job_builder.h"

namespace rollcall {
namespace {

using W = NetworkWait;

// Four ranks on four hosts have entered AllReduce #10 at At(10). At At(40) their agents read a ring
// in which the GPU of rank 2 does not send, since At(11).
struct Stall {
  JobBuilder job{4, false};
  std::vector<NetworkSample> samples;
  Verdict verdict;

  Stall() {
    job.Finish(10);
    job.Enter({0, 1, 2, 3}, At(10));
    for (int32_t rank = 0; rank < 4; ++rank) {
      job.process(rank).stacks_ns = At(40);
      NetworkSample sample;
      sample.communicator = kDp;
      sample.rank = sample.process = rank;
      const W received = rank == 2 ? W::kReceiveGpu : W::kReceive;
      sample.states = {{0, (rank + 1) % 4, true, 4, 3, W::kSendGpu, At(11)},
                       {0, (rank + 3) % 4, false, 4, 3, received, At(11)}};
      samples.push_back(sample);
    }
    const std::vector<Verdict> verdicts = Diagnose(job.state, At(80), Limits());
    EXPECT_EQ(verdicts.size(), 1u);
    if (!verdicts.empty()) verdict = verdicts.front();
    EXPECT_EQ(verdict.cause, Cause::kStalledInFlight);
    verdict.certainty = Certainty::kCertain;
    verdict.missing_evidence.clear();
  }

  void Apply() { ApplyNetwork(job.state, samples, &verdict); }
  bool HasEvidence(const std::string& line) const {
    return std::count(verdict.evidence.begin(), verdict.evidence.end(), line) != 0;
  }
};

TEST(NetworkVerdictTest, NamesRankPeerAndChannel) {
  Stall s;
  s.Apply();
  ASSERT_EQ(s.verdict.culprits.size(), 1u);
  EXPECT_EQ(s.verdict.culprits[0].rank, 2);
  EXPECT_EQ(s.verdict.certainty, Certainty::kLikely);
  EXPECT_EQ(
      WriteSummary(s.verdict),
      "rank 2 (node-2, pid 4002) does not send to rank 3 on channel 0: its GPU has not produced "
      "the data (AllReduce #10 on communicator \"dp\"); 3 ranks have waited 70 s");
  EXPECT_TRUE(s.HasEvidence(
      "rank 2 (node-2, device 2) waits for its own GPU to send to rank 3 (node-3, device 3) on "
      "channel 0 for 29 s, and for no other rank"));
  EXPECT_TRUE(s.verdict.missing_evidence.empty());
}

TEST(NetworkVerdictTest, RanksAreThoseOfTheJob) {
  Stall s;
  for (int rank = 0; rank < 4; ++rank) s.job.process(rank).global_rank = 100 + rank;
  for (int32_t& rank : s.verdict.waiting_ranks) rank += 100;
  s.Apply();
  EXPECT_EQ(s.verdict.network.culprit, 102);
  EXPECT_EQ(s.verdict.network.peer, 103);
  EXPECT_EQ(s.verdict.network.hops.back().rank, 102);
  EXPECT_EQ(s.verdict.culprits[0].rank, 102);
}

// Each row changes one thing, after which the states show nothing.
struct Silence {
  const char* name;
  void (*change)(Stall*);
};

TEST(NetworkVerdictTest, SaysNothing) {
  const Silence rows[] = {
      {"of a call that ranks are absent from",
       [](Stall* s) { s->verdict.cause = Cause::kMissingRank; }},
      {"from samples of another communicator",
       [](Stall* s) {
         for (NetworkSample& x : s->samples) x.communicator = 1;
       }},
      {"from samples of before the wait",
       [](Stall* s) {
         for (int r = 0; r < 4; ++r) s->job.process(r).stacks_ns = At(9);
       }},
      {"from samples that nobody read",
       [](Stall* s) {
         for (int r = 0; r < 4; ++r) s->job.process(r).stacks_ns = 0;
       }},
      {"while a transfer moves", [](Stall* s) { s->samples[1].states[0].since_ns = At(39.5); }},
      {"where a transfer moved after the first sample was read",
       [](Stall* s) { s->job.process(0).stacks_ns = At(12); }},
      {"beside another call that nothing orders", [](Stall* s) { s->verdict.beside = "a call"; }},
      {"of a wait of unknown age", [](Stall* s) { s->samples[1].states[0].since_ns = 0; }},
      {"without a process",
       [](Stall* s) {
         for (NetworkSample& x : s->samples) x.process = 99;
       }},
      {"against a GPU that has finished the call",
       [](Stall* s) {
         s->job.member(2).has_markers = true;
         s->job.member(2).started = s->job.member(2).finished = 11;
       }},
      {"where the culprit's sample is missing",
       [](Stall* s) { s->samples.erase(s->samples.begin() + 2); }},
  };
  for (const Silence& row : rows) {
    Stall s;
    row.change(&s);
    s.Apply();
    EXPECT_EQ(s.verdict.network.fault, NetworkFault::kNone) << row.name;
    EXPECT_TRUE(s.verdict.culprits.empty()) << row.name;
    EXPECT_EQ(s.verdict.certainty, Certainty::kCertain) << row.name;
  }
}

TEST(NetworkVerdictTest, TellsThatSamplesAreMissing) {
  Stall s;
  s.samples.erase(s.samples.begin());
  s.Apply();
  EXPECT_EQ(s.verdict.network.culprit, 2);
  ASSERT_EQ(s.verdict.missing_evidence.size(), 1u);
  EXPECT_EQ(s.verdict.missing_evidence[0],
            "what the transfers over the network of rank 0 wait for: its states are unknown");
}

// As of a call with more members than are asked: who is beyond them is not accused, nor who is not.
TEST(NetworkVerdictTest, BeyondTheRanksThatWereAskedNoRankIsNamed) {
  Stall s;
  s.samples.resize(2);
  s.Apply();
  EXPECT_EQ(s.verdict.network.fault, NetworkFault::kNone);
  EXPECT_TRUE(s.verdict.culprits.empty());
  EXPECT_EQ(s.verdict.missing_evidence,
            std::vector<std::string>{"what the transfers over the network of ranks 2-3 wait for: "
                                     "their states are unknown"});
}

TEST(NetworkVerdictTest, AMarkerIsASecondWitness) {
  Stall s;
  for (int rank = 0; rank < 4; ++rank) {
    s.job.member(rank).has_markers = true;
    s.job.member(rank).started = rank == 2 ? 10 : 11;
    s.job.member(rank).finished = 10;
  }
  s.Apply();
  EXPECT_EQ(s.verdict.certainty, Certainty::kCertain);
  EXPECT_TRUE(s.HasEvidence("rank 2: its GPU has not started the call, shown by GPU markers"));
}

TEST(NetworkVerdictTest, AnErrorIsASecondWitness) {
  Stall s;
  s.job.member(2).async_error = 6;
  s.Apply();
  EXPECT_EQ(s.verdict.certainty, Certainty::kCertain);
}

// The link from rank 2 to rank 3, with a dead port on this host.
Verdict DeadLink(const std::string& host, int64_t died_ns = At(11)) {
  Stall s;
  s.samples[2].states[0].wait = W::kSend;
  for (int rank = 0; rank < 4; ++rank) {
    HostFacts& facts = s.job.state.host_facts[s.job.process(rank).host];
    facts.gathered_ns = At(41);
    facts.probes = {{"kernel_log", "ok", ""}};
    if (s.job.process(rank).host != host) continue;
    HostFact fact;
    fact.kind = HostFactKind::kLinkDown;
    fact.subject = "mlx5_0 port 1";
    fact.at_ns = died_ns;
    facts.facts = {fact};
  }
  s.Apply();
  EXPECT_EQ(s.verdict.network.fault, NetworkFault::kLink);
  EXPECT_EQ(s.verdict.network.culprit, 2);
  EXPECT_EQ(s.verdict.network.peer, 3);
  return s.verdict;
}

bool TellsOfDeadLink(const Verdict& verdict) {
  return std::any_of(verdict.evidence.begin(), verdict.evidence.end(), [](const std::string& line) {
    return line.find("mlx5_0 port 1 went DOWN") != std::string::npos;
  });
}

// It may be a port that the job does not use.
TEST(NetworkVerdictTest, ADeadPortAtOneOfItsEndsIsEvidenceOfALinkAndNoProof) {
  for (const char* end : {"node-2", "node-3"}) {
    const Verdict verdict = DeadLink(end);
    EXPECT_TRUE(TellsOfDeadLink(verdict)) << end;
    EXPECT_EQ(verdict.certainty, Certainty::kLikely) << end;
  }
  EXPECT_FALSE(TellsOfDeadLink(DeadLink("node-0")));
  // Since then the job has gone on for a minute.
  EXPECT_FALSE(TellsOfDeadLink(DeadLink("node-2", At(10) - 60'000'000'000)));
}

TEST(NetworkVerdictTest, AnErrorAtEitherEndIsASecondWitnessOfALink) {
  for (const int32_t rank : {2, 3}) {
    Stall s;
    s.samples[2].states[0].wait = W::kSend;
    s.job.member(rank).async_error = 6;
    s.Apply();
    EXPECT_EQ(s.verdict.network.fault, NetworkFault::kLink);
    EXPECT_EQ(s.verdict.certainty, Certainty::kCertain) << rank;
  }
}

TEST(NetworkVerdictTest, AStoppedRankStaysTheCulprit) {
  Stall s;
  Culprit stopped;
  stopped.process = stopped.rank = 1;
  stopped.state = 'T';
  s.verdict.culprits = {stopped};
  s.Apply();
  ASSERT_EQ(s.verdict.culprits.size(), 1u);
  EXPECT_EQ(s.verdict.culprits[0].rank, 1);
  EXPECT_EQ(s.verdict.certainty, Certainty::kCertain);
  EXPECT_EQ(s.verdict.network.culprit, 2);
}

// Ranks 2 and 3 share a host, within which no transfer passes the network: either GPU may stand.
Stall OnOneHost() {
  Stall s;
  s.job.process(3).host = "node-2";
  s.samples[2].states = {};
  s.samples[3].states = {{0, 0, true, 4, 3, W::kSendGpu, At(11)}};
  s.samples[1].states = {{0, 0, false, 4, 3, W::kReceive, At(11)}};
  s.samples[0].states = {{0, 3, false, 4, 3, W::kReceive, At(11)},
                         {0, 1, true, 4, 3, W::kSendGpu, At(11)}};
  return s;
}

TEST(NetworkVerdictTest, TheGpusOfAHostAreOneSuspect) {
  Stall s = OnOneHost();
  s.Apply();
  ASSERT_EQ(s.verdict.culprits.size(), 2u);
  EXPECT_EQ(s.verdict.culprits[0].rank, 2);
  EXPECT_EQ(s.verdict.culprits[1].rank, 3);
  EXPECT_EQ(s.verdict.certainty, Certainty::kLikely);
}

TEST(NetworkVerdictTest, AMarkerSinglesOutOneGpuOfAHost) {
  Stall s = OnOneHost();
  for (int rank = 0; rank < 4; ++rank) {
    s.job.member(rank).has_markers = true;
    s.job.member(rank).started = rank == 2 ? 10 : 11;
    s.job.member(rank).finished = 10;
  }
  s.Apply();
  ASSERT_EQ(s.verdict.culprits.size(), 1u);
  EXPECT_EQ(s.verdict.culprits[0].rank, 2);
  EXPECT_EQ(s.verdict.network.peer, 3);
  EXPECT_EQ(s.verdict.network.hops.back().rank, 2);
}

}  // namespace
}  // namespace rollcall

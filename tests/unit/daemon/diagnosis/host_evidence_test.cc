// SPDX-License-Identifier: Apache-2.0
// What facts about hosts change in a verdict: evidence, culprits, advice. And what they must not.
#include "daemon/diagnosis/hosts/host_evidence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/read_file.h"
#include "daemon/diagnosis/diagnose.h"
#include "daemon/diagnosis/hosts/host_advice.h"
#include "daemon/diagnosis/hosts/host_fact_rules.h"
#include "daemon/diagnosis/hosts/host_signs.h"
#include "job_builder.h"

namespace rollcall {
namespace {

using K = HostFactKind;

constexpr int64_t kWaitBegan = 100;  // seconds of the test's time
constexpr int kHosts = 8;

// A host as all hosts are: two ports, two GPUs, enough of everything.
HostFacts Healthy(int host) {
  HostFacts facts;
  facts.gathered_ns = At(kWaitBegan + 20);
  for (const char* probe : {"kernel_log", "infiniband", "network", "cgroup", "pressure", "tasks",
                            "clock", "file_system", "gpu"}) {
    facts.probes.push_back({probe, "ok", ""});
  }
  for (const char* port : {"mlx5_0 port 1", "mlx5_2 port 1"}) {
    facts.facts.push_back({K::kIbPort, port, 4, "ACTIVE, LinkUp", 0, 0});
    facts.facts.push_back({K::kIbRate, port, 400, "", 0, 0});
  }
  facts.facts.push_back({K::kNetLink, "ens1", 1, "up", 0, 0});
  for (int gpu : {0, 1}) {
    const std::string subject = absl::StrCat("GPU 0000:", 3 + gpu, "b:00.0");
    facts.facts.push_back({K::kGpu, subject, gpu, absl::StrCat("GPU-", host, "-", gpu), 0, 0});
    facts.facts.push_back({K::kGpuPcieWidth, subject, 16, "of 16", 0, 0});
    facts.facts.push_back({K::kNvlinkState, subject, 18, "of 18", 0, 0});
  }
  facts.facts.push_back({K::kGpuProcess, "GPU 0000:3b:00.0", 0, "", 0, 4000 + host});
  facts.facts.push_back({K::kMemoryLow, "", 60, "", 0, 0});
  facts.facts.push_back({K::kCpuSpeed, "", 98, "", 0, 0});
  facts.facts.push_back({K::kTcpRetransmits, "", 3, "", 0, 0});
  return facts;
}

void AddHealthyHosts(JobBuilder* job, int hosts = kHosts) {
  for (int host = 0; host < hosts; ++host) {
    job->state.host_facts[absl::StrCat("node-", host)] = Healthy(host);
  }
}

void Add(int host, HostFact fact, JobBuilder* job) {
  job->state.host_facts[absl::StrCat("node-", host)].facts.push_back(std::move(fact));
}

// In place of what the host says of this kind and subject.
void Set(int host, HostFact fact, JobBuilder* job) {
  auto& facts = job->state.host_facts[absl::StrCat("node-", host)].facts;
  facts.erase(std::remove_if(facts.begin(), facts.end(),
                             [&](const HostFact& old) {
                               return old.kind == fact.kind && old.subject == fact.subject;
                             }),
              facts.end());
  facts.push_back(std::move(fact));
}

// All ranks are in a call that does not finish.
JobBuilder Stalled() {
  JobBuilder job(kHosts);
  job.Finish(24);
  job.Enter(JobBuilder::Ranks(0, kHosts), At(kWaitBegan));
  AddHealthyHosts(&job);
  return job;
}

// Rank 3 has not entered the call.
JobBuilder OneIsMissing() {
  JobBuilder job(kHosts);
  job.Finish(24);
  job.Enter({0, 1, 2, 4, 5, 6, 7}, At(kWaitBegan));
  AddHealthyHosts(&job);
  return job;
}

Verdict Judge(const JobBuilder& job) {
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(kWaitBegan + 60), Limits());
  EXPECT_EQ(verdicts.size(), 1u);
  return verdicts.empty() ? Verdict() : verdicts.front();
}

std::vector<int32_t> Culprits(const Verdict& verdict) {
  std::vector<int32_t> ranks;
  for (const Culprit& culprit : verdict.culprits) ranks.push_back(culprit.rank);
  return ranks;
}

// The lines of evidence that a host begins.
std::vector<std::string> HostLines(const Verdict& verdict) {
  std::vector<std::string> lines;
  for (const std::string& line : verdict.evidence) {
    if (absl::StartsWith(line, "node-")) lines.push_back(line);
  }
  return lines;
}

HostFact LinkDown(int64_t at = kWaitBegan - 3) {
  return {K::kLinkDown, "mlx5_2 port 1", 0, "mlx5_core 0000:98:00.0 ens3: Link down", At(at), 0};
}

TEST(HostEvidenceTest, HealthyHostsAreNotEvidence) {
  JobBuilder with = Stalled(), without = Stalled();
  without.state.host_facts.clear();
  const Verdict verdict = Judge(with), plain = Judge(without);
  EXPECT_EQ(verdict.evidence, plain.evidence);
  EXPECT_EQ(verdict.missing_evidence, plain.missing_evidence);
  EXPECT_EQ(verdict.certainty, plain.certainty);
  EXPECT_EQ(verdict.summary, plain.summary);
  EXPECT_EQ(verdict.advice.front().id, plain.advice.front().id);
  EXPECT_TRUE(verdict.culprits.empty());
}

TEST(HostEvidenceTest, ALinkThatWentDownMakesItsRankTheCulprit) {
  JobBuilder job = Stalled();
  Add(5, LinkDown(), &job);
  Set(5, {K::kIbPort, "mlx5_2 port 1", 1, "DOWN, Polling", 0, 0}, &job);
  const Verdict verdict = Judge(job);
  EXPECT_EQ(verdict.cause, Cause::kStalledInFlight);
  EXPECT_EQ(Culprits(verdict), std::vector<int32_t>{5});
  EXPECT_EQ(verdict.certainty, Certainty::kLikely);
  EXPECT_EQ(
      HostLines(verdict),
      std::vector<std::string>{"node-5: mlx5_2 port 1 went DOWN 3 s before the wait began; the "
                               "other 7 hosts show nothing like it"});
  EXPECT_EQ(verdict.advice.front().id, "check-link");
  EXPECT_TRUE(absl::StrContains(verdict.advice.front().text, "`ibstat mlx5_2 1`"));
  EXPECT_TRUE(absl::StrContains(verdict.advice.front().text, "node-5"));
  EXPECT_EQ(verdict.advice.back().id, "check-network-and-gpu") << "the general advice stays";
}

TEST(HostEvidenceTest, APortThatOthersHaveUpIsEvidenceWithoutALog) {
  JobBuilder job = Stalled();
  Set(5, {K::kIbPort, "mlx5_2 port 1", 1, "DOWN, Polling", 0, 0}, &job);
  const Verdict verdict = Judge(job);
  EXPECT_EQ(Culprits(verdict), std::vector<int32_t>{5});
  EXPECT_EQ(
      HostLines(verdict),
      std::vector<std::string>{"node-5: mlx5_2 port 1 is DOWN, Polling; the other 7 hosts show "
                               "nothing like it"});
}

TEST(HostEvidenceTest, APortThatIsDownEverywhereIsUsual) {
  JobBuilder job = Stalled();
  for (int host = 0; host < kHosts; ++host) {
    Set(host, {K::kIbPort, "mlx5_2 port 1", 1, "DOWN, Disabled", 0, 0}, &job);
  }
  EXPECT_TRUE(HostLines(Judge(job)).empty());
}

TEST(HostEvidenceTest, AFaultOnMostHostsIsEvidenceAndNoDifference) {
  JobBuilder job = Stalled();
  for (int host = 0; host < 6; ++host) Add(host, LinkDown(), &job);
  const Verdict verdict = Judge(job);
  EXPECT_TRUE(verdict.culprits.empty());
  ASSERT_EQ(HostLines(verdict).size(), 1u);
  EXPECT_TRUE(absl::StrContains(HostLines(verdict)[0], "; the like on 5 hosts"))
      << HostLines(verdict)[0];
}

TEST(HostEvidenceTest, AnOldMessageExplainsNothing) {
  JobBuilder job = Stalled();
  Add(5, LinkDown(kWaitBegan - 601), &job);
  EXPECT_TRUE(HostLines(Judge(job)).empty());
}

TEST(HostEvidenceTest, AMessageFromLongBeforeIsEvidenceWithoutACulprit) {
  JobBuilder job = Stalled();
  Add(5, LinkDown(kWaitBegan - 300), &job);
  const Verdict verdict = Judge(job);
  EXPECT_EQ(HostLines(verdict).size(), 1u);
  EXPECT_TRUE(verdict.culprits.empty());
}

TEST(HostEvidenceTest, FactsFromBeforeTheWaitDoNotCount) {
  JobBuilder job = Stalled();
  Add(5, LinkDown(), &job);
  for (auto& [host, facts] : job.state.host_facts) facts.gathered_ns = At(kWaitBegan - 1);
  EXPECT_TRUE(HostLines(Judge(job)).empty());
  EXPECT_TRUE(Judge(job).culprits.empty());
}

TEST(HostEvidenceTest, ALaterMessageSaysSo) {
  JobBuilder job = Stalled();
  Add(5, {K::kXid, "GPU 0000:3b:00.0", 79, "GPU has fallen off the bus.", At(kWaitBegan + 12), 0},
      &job);
  const Verdict verdict = Judge(job);
  EXPECT_EQ(
      HostLines(verdict),
      std::vector<std::string>{
          "node-5: GPU 0000:3b:00.0 reported Xid 79 (GPU has fallen off the bus.) [rank 5] 12 s "
          "after the wait began; the other 7 hosts show nothing like it"});
  EXPECT_EQ(verdict.advice.front().id, "gpu-fault");
}

TEST(HostEvidenceTest, AGpuOfAnotherJobIsNotEvidence) {
  JobBuilder job = Stalled();
  Add(5, {K::kXid, "GPU 0000:4b:00.0", 79, "GPU has fallen off the bus.", At(kWaitBegan), 0}, &job);
  const Verdict verdict = Judge(job);
  EXPECT_TRUE(HostLines(verdict).empty());
  EXPECT_TRUE(verdict.culprits.empty());
}

TEST(HostEvidenceTest, IgnoresTheDriversMessagesAboutAnEndedProcess) {
  JobBuilder job = Stalled();
  Add(5, {K::kXid, "GPU 0000:3b:00.0", 45, "Ch 00000008", At(kWaitBegan + 1), 0}, &job);
  EXPECT_TRUE(HostLines(Judge(job)).empty());
}

// Two ranks on one host: the one whose GPU is lost, and not its neighbour.
TEST(HostEvidenceTest, AGpuNamesItsRankOnAHostOfTwo) {
  JobBuilder job = Stalled();
  for (const int rank : {4, 5}) job.state.processes[static_cast<size_t>(rank)].host = "node-5";
  job.state.host_facts.erase("node-4");
  Add(5, {K::kGpuLost, "GPU 0000:3b:00.0", 15, "GPU is lost", 0, 0}, &job);
  EXPECT_EQ(Culprits(Judge(job)), std::vector<int32_t>{5});
  job.state.processes[4].gpu_uuid = "GPU-5-1";
  Add(5, {K::kGpuLost, "GPU 0000:4b:00.0", 15, "GPU is lost", 0, 0}, &job);
  EXPECT_EQ(Culprits(Judge(job)), (std::vector<int32_t>{4, 5}));
}

TEST(HostEvidenceTest, OnOneHostOnlyAFactThatNamesARankMakesACulprit) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2, 3}, At(kWaitBegan));
  for (Process& process : job.state.processes) process.host = "node-0";
  AddHealthyHosts(&job, 1);
  Add(0, LinkDown(), &job);
  Verdict verdict = Judge(job);
  EXPECT_TRUE(verdict.culprits.empty());
  EXPECT_EQ(HostLines(verdict),
            std::vector<std::string>{"node-0: mlx5_2 port 1 went DOWN 3 s before the wait began"});
  job.state.host_facts["node-0"].facts.pop_back();
  Add(0, {K::kCgroupFrozen, "", 1, "", 0, 4002}, &job);
  verdict = Judge(job);
  EXPECT_EQ(Culprits(verdict), std::vector<int32_t>{2});
  EXPECT_EQ(verdict.advice.front().id, "frozen-group");
}

TEST(HostEvidenceTest, GrowthCountsWhereFewOthersGrow) {
  JobBuilder job = Stalled();
  Add(5, {K::kIbRetransmits, "mlx5_2 port 1", 40, "local_ack_timeout_err +40", 0, 0}, &job);
  const Verdict verdict = Judge(job);
  EXPECT_EQ(HostLines(verdict),
            std::vector<std::string>{
                "node-5: mlx5_2 port 1 sent again or timed out 40 times in a second "
                "(local_ack_timeout_err +40); the other 7 hosts show nothing like it"});
  EXPECT_TRUE(verdict.culprits.empty()) << "peers of a broken port time out, too";
  for (int host = 0; host < kHosts; ++host) {
    Add(host, {K::kIbRetransmits, "mlx5_2 port 1", 30, "", 0, 0}, &job);
  }
  EXPECT_TRUE(HostLines(Judge(job)).empty());
}

TEST(HostEvidenceTest, ARateThatOthersExceedIsEvidence) {
  JobBuilder job = Stalled();
  Set(5, {K::kIbRate, "mlx5_2 port 1", 100, "", 0, 0}, &job);
  const Verdict verdict = Judge(job);
  EXPECT_EQ(HostLines(verdict).size(), 1u);
  EXPECT_TRUE(verdict.culprits.empty());
  EXPECT_EQ(verdict.advice.front().id, Judge(Stalled()).advice.front().id)
      << "a slow link does not stop a call";
}

TEST(HostEvidenceTest, ARankWithoutALookIsMissingEvidence) {
  JobBuilder job = Stalled();
  for (const int host : {2, 3}) {
    job.state.host_facts[absl::StrCat("node-", host)].probes[0] = {"kernel_log", "denied",
                                                                   "cannot read /dev/kmsg"};
  }
  job.state.host_facts["node-4"] = HostFacts();
  job.state.host_facts["node-4"].gathered_ns = At(kWaitBegan + 20);
  job.state.host_facts["node-4"].error = "the agent of this host runs with --host-facts=off";
  Add(5, LinkDown(), &job);
  const Verdict verdict = Judge(job);
  const auto has = [&](const char* line) {
    return std::find(verdict.missing_evidence.begin(), verdict.missing_evidence.end(), line) !=
           verdict.missing_evidence.end();
  };
  EXPECT_TRUE(has("node-2, node-3: no look at kernel_log: cannot read /dev/kmsg"));
  EXPECT_TRUE(has("node-4: no facts: the agent of this host runs with --host-facts=off"));
  EXPECT_TRUE(absl::StrContains(HostLines(verdict)[0], "the other 4 hosts"))
      << HostLines(verdict)[0];
}

TEST(HostEvidenceTest, AnAbsentRankGetsTheReasonWhyItStandsStill) {
  JobBuilder job = OneIsMissing();
  Add(3, {K::kTaskBlocked, "", 2, "rpc_wait_bit_killable", 0, 4003}, &job);
  Add(3, {K::kFileSystemSilent, "/mnt/data", 0, "nfs4 fs1:/export", 0, 0}, &job);
  const Verdict verdict = Judge(job);
  EXPECT_EQ(verdict.cause, Cause::kMissingRank);
  EXPECT_EQ(Culprits(verdict), std::vector<int32_t>{3});
  EXPECT_EQ(verdict.certainty, Judge(OneIsMissing()).certainty);
  EXPECT_EQ(
      HostLines(verdict),
      (std::vector<std::string>{
          "node-3: pid 4003 has 2 threads in state D, in rpc_wait_bit_killable [rank 3]; the "
          "other 7 hosts show nothing like it",
          "node-3: /mnt/data does not answer (nfs4 fs1:/export); the other 7 hosts show nothing "
          "like it"}));
  EXPECT_EQ(verdict.advice[1].id, "file-server-silent");
}

TEST(HostEvidenceTest, IgnoresFactsOfOtherHostsForAnAbsentRank) {
  JobBuilder job = OneIsMissing();
  Add(5, LinkDown(), &job);
  Add(6, {K::kTaskBlocked, "", 2, "io_schedule", 0, 4006}, &job);
  EXPECT_TRUE(HostLines(Judge(job)).empty());
}

// NVML lists no processes of a GPU that is gone: the rank is the one that uses no other GPU.
TEST(HostEvidenceTest, NamesTheRankOfAGpuThatFellOffTheBus) {
  JobBuilder job = Stalled();
  for (const int rank : {4, 5}) job.state.processes[static_cast<size_t>(rank)].host = "node-5";
  job.state.host_facts.erase("node-4");
  auto& facts = job.state.host_facts["node-5"].facts;
  facts.erase(std::remove_if(facts.begin(), facts.end(),
                             [](const HostFact& f) { return f.subject == "GPU 0000:3b:00.0"; }),
              facts.end());
  Add(5, {K::kGpuProcess, "GPU 0000:4b:00.0", 0, "", 0, 4004}, &job);
  Add(5, {K::kXid, "GPU 0000:3b:00.0", 79, "GPU has fallen off the bus.", At(kWaitBegan), 0}, &job);
  EXPECT_EQ(Culprits(Judge(job)), std::vector<int32_t>{5});
}

TEST(HostEvidenceTest, MarksWhatAllHostsShow) {
  JobBuilder job = OneIsMissing();
  for (int host = 0; host < kHosts; ++host) {
    Add(host, {K::kFileSystemSilent, "/mnt/data", 0, "nfs4 fs1:/export", 0, 0}, &job);
  }
  const Verdict verdict = Judge(job);
  ASSERT_EQ(HostLines(verdict).size(), 1u);
  EXPECT_TRUE(absl::StrContains(HostLines(verdict)[0], "; the like on 7 hosts"))
      << HostLines(verdict)[0];
}

TEST(HostEvidenceTest, ADeathIsExplainedByTheKernelsWord) {
  JobBuilder job = OneIsMissing();
  Process& dead = job.state.processes[3];
  dead.liveness = Liveness::kDied;
  dead.exit_signal = 9;
  dead.ended_ns = At(kWaitBegan - 2);
  Add(3, {K::kOomKill, "", 0, "Out of memory: Killed process 4003", At(kWaitBegan - 2), 4003},
      &job);
  const Verdict verdict = Judge(job);
  EXPECT_EQ(verdict.cause, Cause::kRankDied);
  EXPECT_EQ(
      HostLines(verdict),
      std::vector<std::string>{"node-3: the kernel killed pid 4003 for lack of memory [rank 3] 2 s "
                               "before the wait began; the other 7 hosts show nothing like it"});
  EXPECT_EQ(verdict.advice.front().id, "out-of-memory");
}

TEST(HostEvidenceTest, AContradictionNeedsNoHost) {
  JobBuilder job(kHosts);
  job.Finish(24);
  job.Enter({0, 1, 2, 4, 5, 6, 7}, At(kWaitBegan));
  job.Enter({3}, At(kWaitBegan), AllReduce(7));
  AddHealthyHosts(&job);
  Add(3, LinkDown(), &job);
  const Verdict verdict = Judge(job);
  EXPECT_EQ(verdict.cause, Cause::kArgumentMismatch);
  EXPECT_TRUE(HostLines(verdict).empty());
}

TEST(HostEvidenceTest, NoFactMakesAVerdictCertain) {
  for (const HostFactInfo& info : kHostFactTable) {
    JobBuilder job = Stalled();
    Add(5, {info.kind, "mlx5_2 port 1", 1000, "text", At(kWaitBegan), 4005}, &job);
    const Verdict verdict = Judge(job);
    EXPECT_TRUE(verdict.culprits.empty() || verdict.certainty <= Certainty::kLikely) << info.text;
    for (const std::string& line : HostLines(verdict)) EXPECT_LT(line.size(), 400u) << line;
  }
}

// The facts of the largest job that has any, judged as often as a suspected hang is.
TEST(HostEvidenceTest, AThousandHostsStayReadable) {
  constexpr int kMany = 1000;
  JobBuilder job(kMany);
  job.Finish(3);
  job.Enter(JobBuilder::Ranks(0, kMany), At(kWaitBegan));
  AddHealthyHosts(&job, kMany);
  for (int host = 0; host < 300; ++host) Add(host, LinkDown(), &job);
  const Verdict verdict = Judge(job);
  EXPECT_EQ(verdict.culprits.size(), 0u) << "more than any person reads";
  ASSERT_EQ(HostLines(verdict).size(), 1u);
  EXPECT_LT(HostLines(verdict)[0].size(), 300u);
}

TEST(HostFactRulesTest, EachKindWithAdviceNamesAnEntry) {
  std::set<std::string> ids, used;
  for (const HostAdviceEntry& entry : HostAdvice()) EXPECT_TRUE(ids.insert(entry.id).second);
  for (size_t i = 0; i < kHostFactKinds; ++i) {
    const std::string advice = RuleOf(static_cast<K>(i)).advice;
    if (!advice.empty()) used.insert(advice);
  }
  EXPECT_EQ(ids, used);
}

TEST(HostFactRulesTest, WhatIsUsualEverywhereIsNotWorthALook) {
  EXPECT_FALSE(IsWorthALook(K::kIbPort, 4));
  EXPECT_TRUE(IsWorthALook(K::kIbPort, 1));
  EXPECT_FALSE(IsWorthALook(K::kGpuProcess, 0));
  EXPECT_FALSE(IsWorthALook(K::kTcpRetransmits, 3));
  EXPECT_TRUE(IsWorthALook(K::kLinkDown, 0));
}

const char* RuleInWords(const HostFactRule& rule) {
  switch (rule.rule) {
    case HostSignRule::kAlways:
      return "always";
    case HostSignRule::kMore:
      return "where few others have as much";
    case HostSignRule::kLess:
      return "where most others have more";
    case HostSignRule::kNever:
      break;
  }
  return "never by itself";
}

const char* WeightInWords(const HostFactRule& rule) {
  if (rule.rule == HostSignRule::kNever) return "";
  switch (rule.weight) {
    case HostSignWeight::kStalls:
      return "may stop a call";
    case HostSignWeight::kExplains:
      return "may hold up a rank";
    case HostSignWeight::kContext:
      break;
  }
  return "context";
}

std::string Document() {
  std::string text =
      "# Facts about hosts\n\n"
      "Look up here what a verdict shows of a host: the kinds of facts, and what to do about each. "
      "When a hang is suspected, the agents of its hosts look once at what lies beneath the job. "
      "`ROLLCALL_WRITE_DOCS=1 diagnosis_test` generates "
      "this page from `proto/host_facts.def`, `daemon/diagnosis/hosts/host_fact_rules.cc` and "
      "`daemon/diagnosis/hosts/host_advice.cc`. "
      "[running.md](running.md#facts-about-hosts) shows how to permit or forbid it.\n\n"
      "## Kinds\n\n"
      "A fact is evidence: always, or where it differs from the other hosts (GPUs, ports) of the "
      "job. One that "
      "may stop a call makes the ranks of its host the culprits of `stalled_in_flight`, `likely` "
      "at "
      "most.\n\n"
      "In the words of a fact, `$s` is its subject (a GPU, a port, a network card, a file "
      "system), `$v` its number, `$t` what the kernel or the driver says about it, and `$p` a "
      "pid.\n\n| kind | probe | the fact in words | evidence | weight | advice "
      "|\n|---|---|---|---|---|---|\n";
  for (size_t i = 0; i < kHostFactKinds; ++i) {
    const HostFactRule& rule = RuleOf(static_cast<K>(i));
    const HostFactInfo& info = kHostFactTable[i];
    absl::StrAppend(&text, "| `", info.text, "` | ", info.probe, " | ", info.phrase, " | ",
                    RuleInWords(rule), " | ", WeightInWords(rule), " | ", rule.advice, " |\n");
  }
  text += "\n## Advice\n";
  for (const HostAdviceEntry& entry : HostAdvice()) {
    absl::StrAppend(&text, "\n### ", entry.id, "\n\n", entry.why, "\n\n**", entry.text, "**\n");
  }
  return text;
}

TEST(HostFactRulesTest, TheDocumentationIsTheTable) {
  const std::string path = ROLLCALL_DOCS "/host_facts.md";
  if (std::getenv("ROLLCALL_WRITE_DOCS") != nullptr) std::ofstream(path) << Document();
  const std::string text = ReadFile(path).value_or("");
  EXPECT_EQ(text, Document()) << "run: ROLLCALL_WRITE_DOCS=1 diagnosis_test";
}

}  // namespace
}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/diagnose.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/diagnosis/advice.h"
#include "daemon/diagnosis/explain.h"
#include "daemon/diagnosis/graphs.h"
#include "daemon/diagnosis/hosts/gpu_sharing.h"
#include "daemon/diagnosis/hosts/host_advice.h"
#include "daemon/diagnosis/hosts/host_evidence.h"
#include "daemon/diagnosis/hosts/starved_hosts.h"
#include "daemon/diagnosis/learned_step.h"
#include "daemon/diagnosis/losses.h"
#include "daemon/diagnosis/network_evidence.h"
#include "daemon/diagnosis/other_calls.h"
#include "daemon/diagnosis/p2p_sizes.h"
#include "daemon/diagnosis/roots.h"
#include "daemon/diagnosis/standing/standstill.h"
#include "daemon/diagnosis/steps.h"
#include "daemon/diagnosis/summary.h"
#include "daemon/diagnosis/verdict_departure.h"
#include "daemon/diagnosis/verdict_places.h"
#include "daemon/diagnosis/verdict_sites.h"
#include "daemon/diagnosis/waits/awaited_keys.h"
#include "daemon/diagnosis/waits/idle_servers.h"
#include "daemon/diagnosis/waits/live_ranks.h"
#include "daemon/diagnosis/waits/open_choices.h"
#include "daemon/diagnosis/waits/outside_waits.h"
#include "daemon/diagnosis/waits/side_waits.h"
#include "daemon/model/calling_threads.h"
#include "daemon/rules/divergence.h"
#include "daemon/rules/freshness.h"
#include "daemon/rules/rules.h"
#include "daemon/rules/store_waits.h"
#include "daemon/rules/wait_graph.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

// A hang of a large job blocks thousands of calls: this limits the verdicts.
constexpr size_t kMostMismatches = 64;
constexpr size_t kMostLines = 48;  // of evidence

bool MayWait(const Communicator& comm) { return comm.version == 0 || comm.may_wait != 0; }

int64_t WaitingSince(const Communicator& comm) {
  int64_t since = 0;
  if (!MayWait(comm)) return since;
  for (const auto& [rank, member] : comm.members) {
    const int64_t candidate = WaitsSince(member);
    if (candidate != 0 && (since == 0 || candidate < since)) since = candidate;
  }
  return since;
}

// Ranks disagree on its size or have one number: NCCL may have refused one of them already.
// Whether ranks claim different sizes or one rank, and the communicator has not formed. The claims
// stay for as long as it lives.
bool IsDisputed(const Communicator& comm) {
  if (comm.claims.empty() && comm.rivals.empty()) return false;
  return std::any_of(comm.members.begin(), comm.members.end(), [](const auto& entry) {
    const MemberState state = entry.second.state;
    return state == MemberState::kInitializing || state == MemberState::kFailed;
  });
}

bool IsForming(const std::vector<StuckCall>& calls) {
  return std::any_of(calls.begin(), calls.end(),
                     [](const StuckCall& call) { return call.kind == StuckCall::Kind::kCreation; });
}

// The shortest wait that any rule considers.
int64_t ShortestLimit(const Limits& limits) {
  return std::min({limits.suspect_after_ns, limits.suspect_floor_ns, limits.absent_for_good_ns});
}

void Shorten(std::vector<std::string>* lines) {
  if (lines->size() <= kMostLines) return;
  const size_t more = lines->size() - kMostLines;
  lines->resize(kMostLines);
  lines->push_back(absl::StrCat("and ", CountInWords(more, "more line", "more lines")));
}

// A verdict on too few reports, or on mixed ones, is often over with the next report. It is not the
// root cause while another verdict may be.
void PutSettledFirst(std::vector<Verdict>* verdicts) {
  const auto is_root = [](const Verdict& v) { return !v.is_consequence && !IsWarning(v.cause); };
  const auto roots_end = std::find_if_not(verdicts->begin(), verdicts->end(), is_root);
  std::stable_partition(verdicts->begin(), roots_end,
                        [](const Verdict& v) { return !v.unsettled; });
}

// Leaves out the waits of threads and ranks that others will serve.
std::vector<Verdict> JudgeWaits(const JobState& job, const StuckCalls& calls, int64_t now_ns,
                                const Limits& limits, std::vector<Verdict>* consequences) {
  const LiveRanks live(job, calls, now_ns, limits);
  const SideWaits side = SplitSideWaits(job, calls, live);
  const ClosedCalls closed = WithoutOpenChoices(side.calls, live, now_ns, limits);
  std::vector<Verdict> verdicts = JudgeCalls(job, closed.calls, now_ns, limits, consequences);
  for (Verdict& verdict : verdicts) CountFromNewestCall(job, live, &verdict);
  if (!verdicts.empty() || side.unsure.empty()) return verdicts;
  // A listener for any rank does not count, while one of the others works.
  StuckCalls all = side.calls;
  all.insert(all.end(), side.unsure.begin(), side.unsure.end());
  const ClosedCalls with_unsure = WithoutOpenChoices(all, live, now_ns, limits);
  std::optional<Verdict> idle = JudgeSideWaits(job, with_unsure.calls, now_ns, limits);
  if (idle) verdicts.push_back(*std::move(idle));
  return verdicts;
}

}  // namespace

std::vector<Verdict> Diagnoser::Run(const JobState& job, int64_t now_ns, const Limits& limits) {
  RankFinder finder(job);
  const Overview overview = ExamineCommunicators(job, now_ns, limits, &finder);
  std::vector<Verdict> verdicts, consequences;
  if (overview.has_long_wait) {
    StuckCalls calls = Collect(job, &finder);
    const StoreWaits in_store = FindStoreWaits(job, calls, now_ns, limits);
    for (const StuckCall& call : in_store.calls) calls.push_back(&call);
    const KeyWaits for_keys = FindKeyWaits(job);
    for (const StuckCall& call : for_keys.calls) calls.push_back(&call);
    verdicts = JudgeWaits(job, calls, now_ns, limits, &consequences);
  }
  for (const Verdict* mismatch : FirstMismatches()) {
    verdicts.push_back(*mismatch);
    Verdict& verdict = verdicts.back();
    if (verdict.since_ns != 0) verdict.waited_ns = std::max<int64_t>(0, now_ns - verdict.since_ns);
  }
  if (std::optional<Verdict> start = JudgeStart(job, now_ns, limits)) {
    verdicts.push_back(*std::move(start));
  }
  if (verdicts.empty()) {
    if (std::optional<Verdict> still = JudgeStandstill(job, now_ns, limits)) {
      verdicts.push_back(*std::move(still));
    }
  }
  const bool hangs = !verdicts.empty();
  if (!hangs) {
    for (const Communicator* comm : overview.straggling) {
      for (Verdict& v : JudgeStragglers(job, *comm, now_ns)) verdicts.push_back(std::move(v));
    }
  }
  verdicts = InOrderOfCause(job, std::move(verdicts));
  if (hangs) verdicts.insert(verdicts.end(), consequences.begin(), consequences.end());
  for (Verdict& verdict : verdicts) {
    verdict.is_at_least = job.offline;
    AddNetwork(job, &verdict);
    WeighAge(job, now_ns, limits, &verdict);
    WeighStops(job, &verdict);
    AddSteps(job, &verdict);
    const size_t period = LearnStep(job, &verdict);
    AddGraphs(job, &verdict);
    AddPlaces(job, &verdict);
    WeighOtherCalls(job, &verdict);
    WeighOutsideWork(job, &verdict);
    if (verdict.outside.rank < 0) WeighIdleServers(job, &verdict);
    AddHandledException(&verdict);
    AddLastException(job, &verdict);
    AddThreadFailures(job, &verdict);
    AddSocketWait(job, &verdict);
    AddKeeper(job, &verdict);
    AddGpuSharing(job, &verdict);
    AddLosses(job, &verdict);
    AddForbiddenStacks(job, &verdict);
    AddHostEvidence(job, &verdict);
    WeighStarvedHosts(job, limits, &verdict);
    FindCallSites(job, &verdict);
    AddDeparture(job, &verdict);
    verdict.summary = Summarize(verdict, period);
    verdict.advice = AdviceFor(verdict);
    if (!verdict.is_consequence) AddHostAdvice(&verdict);
    DescribeCallSites(&verdict);
    Shorten(&verdict.evidence);
    Shorten(&verdict.missing_evidence);
  }
  PutSettledFirst(&verdicts);
  const bool changes = overview.has_long_wait || !verdicts.empty();
  next_due_ns_ = changes ? now_ns : overview.next_long_wait_ns;
  return verdicts;
}

// Returns the earliest contradictions, at most kMostMismatches.
std::vector<const Verdict*> Diagnoser::FirstMismatches() {
  std::vector<const Verdict*> first;
  if (!may_mismatch_) return first;
  for (const auto& [id, finding] : findings_) {
    for (const Verdict& verdict : finding.mismatches) first.push_back(&verdict);
  }
  may_mismatch_ = !first.empty();
  if (first.size() <= kMostMismatches) return first;
  std::stable_sort(first.begin(), first.end(),
                   [](const Verdict* a, const Verdict* b) { return a->since_ns < b->since_ns; });
  first.resize(kMostMismatches);
  return first;
}

// Merges two tables that both have the order of the communicators' ids.
Diagnoser::Overview Diagnoser::ExamineCommunicators(const JobState& job, int64_t now_ns,
                                                    const Limits& limits, RankFinder* finder) {
  const int64_t before = now_ns - ShortestLimit(limits);
  Overview overview;
  auto finding = findings_.begin();
  for (const auto& [id, comm] : job.communicators) {
    while (finding != findings_.end() && finding->first < id) finding = findings_.erase(finding);
    if (finding == findings_.end() || finding->first != id) {
      finding = findings_.emplace_hint(finding, id, Finding());
    }
    ExamineCommunicator(job, comm, &finding->second);
    if (!overview.has_long_wait) {
      overview.has_long_wait = WaitsSinceBefore(comm, now_ns, before, &finding->second);
    }
    if (!overview.has_long_wait) {
      overview.next_long_wait_ns =
          std::min(overview.next_long_wait_ns, NextLongWait(comm, finding->second, limits));
    }
    CompareSizes(job, comm, now_ns, finder, &finding->second, &overview);
    if (MayWait(comm) && IsDisputed(comm)) overview.has_long_wait = true;
    if (IsStraggling(comm)) overview.straggling.push_back(&comm);
    ++finding;
  }
  findings_.erase(finding, findings_.end());
  ExamineProcesses(job, now_ns, limits, &overview);
  return overview;
}

void Diagnoser::ExamineProcesses(const JobState& job, int64_t now_ns, const Limits& limits,
                                 Overview* overview) {
  const int64_t shortest = ShortestLimit(limits);
  const bool starts = job.communicators.empty();  // see JudgeStart()
  for (const Process& process : job.processes) {
    if (overview->has_long_wait) return;
    if (!process.error.empty()) overview->has_long_wait = true;
    for (const BlockedCall& b : process.blocked) {
      if (WaitsBeside(process, b)) continue;
      if (b.since_ns <= now_ns - shortest) overview->has_long_wait = true;
      overview->next_long_wait_ns = std::min(overview->next_long_wait_ns, b.since_ns + shortest);
    }
    if (!starts || process.waits_outside_since_ns == 0) continue;
    overview->next_long_wait_ns = std::min(
        overview->next_long_wait_ns, process.waits_outside_since_ns + limits.suspect_after_ns);
  }
}

int64_t Diagnoser::NextLongWait(const Communicator& comm, const Finding& finding,
                                const Limits& limits) {
  if (!MayWait(comm)) return kNever;
  const bool known = finding.waits_version == comm.version;
  if (known && finding.waits_since_ns == 0) return kNever;
  return (known ? finding.waits_since_ns : finding.no_wait_before_ns) + ShortestLimit(limits);
}

void Diagnoser::ExamineCommunicator(const JobState& job, const Communicator& comm,
                                    Finding* finding) {
  if (finding->version == comm.version && comm.version != 0) return;
  finding->version = comm.version;
  finding->has_calls = false;
  finding->mismatches.clear();
  if (comm.version == 0 || comm.may_diverge) FindMismatches(job, comm, finding);
}

void Diagnoser::FindMismatches(const JobState& job, const Communicator& comm, Finding* finding) {
  finding->mismatches = JudgeMismatches(job, comm);
  may_mismatch_ = may_mismatch_ || !finding->mismatches.empty();
}

// In most cases no rank waits for long: then this does not examine the members.
bool Diagnoser::WaitsSinceBefore(const Communicator& comm, int64_t now_ns, int64_t before,
                                 Finding* finding) {
  if (finding->no_wait_before_ns > before && comm.version != 0) return false;
  const int64_t since = WaitingSince(comm);
  finding->waits_version = comm.version;
  finding->waits_since_ns = since;
  finding->no_wait_before_ns = since == 0 ? now_ns : since;
  return since != 0 && since <= before;
}

// Looks at the members of a communicator only once in a while: in a job in good health messages are
// always under way.
void Diagnoser::CompareSizes(const JobState& job, const Communicator& comm, int64_t now_ns,
                             RankFinder* finder, Finding* finding, Overview* overview) {
  const bool is_kept = comm.version != 0;
  if (!MayWait(comm) || (is_kept && !comm.uses_p2p)) return;
  if (finding->messages == nullptr) finding->messages = std::make_unique<Messages>();
  Messages& messages = *finding->messages;
  const auto look_at = [overview](int64_t time_ns) {
    overview->next_long_wait_ns = std::min(overview->next_long_wait_ns, time_ns);
  };
  const int64_t before = now_ns - kCompareSizesAfterNs;
  if (!is_kept || messages.version != comm.version) {
    const int64_t looked = messages.no_wait_before_ns;
    if (is_kept && looked > before) return look_at(looked + kCompareSizesAfterNs);
    const int64_t since = P2pWaitsSince(comm);
    messages.version = comm.version;
    messages.waits_since_ns = since;
    messages.no_wait_before_ns = since == 0 ? now_ns : since;
    messages.sizes_compared = false;
  }
  const int64_t since = messages.waits_since_ns;
  if (since == 0) return;
  if (since > before) return look_at(since + kCompareSizesAfterNs);
  if (!messages.sizes_compared) messages.sizes_differ = DoSizesDiffer(job, comm, finder);
  messages.sizes_compared = true;
  if (messages.sizes_differ) overview->has_long_wait = true;
}

StuckCalls Diagnoser::Collect(const JobState& job, RankFinder* finder) {
  StuckCalls calls;
  auto at = findings_.begin();
  for (const auto& [id, comm] : job.communicators) {
    Finding& finding = (at++)->second;
    // The search for ranks that never joined covers all processes, so the version of
    // the communicator is not enough.
    if (!finding.has_calls || finding.is_forming || comm.version == 0) {
      finding.calls = MayWait(comm) ? FindStuckCalls(job, comm, finder) : std::vector<StuckCall>();
      finding.has_calls = true;
      finding.is_forming = IsForming(finding.calls);
      // Compares the signatures that JobModel could not compare on arrival.
      const bool compared = comm.version == 0 || comm.may_diverge || !comm.keeps_records;
      if (!compared && !finding.calls.empty()) FindMismatches(job, comm, &finding);
    }
    for (StuckCall& call : finding.calls) {
      call.communicator = &comm;
      calls.push_back(&call);
    }
  }
  return calls;
}

std::vector<Verdict> Diagnose(const JobState& job, int64_t now_ns, const Limits& limits) {
  return Diagnoser().Run(job, now_ns, limits);
}

}  // namespace rollcall

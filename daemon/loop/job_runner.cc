// SPDX-License-Identifier: Apache-2.0
#include "daemon/loop/job_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "base/steady_clock.h"
#include "daemon/diagnosis/pairs/pair_verdicts.h"
#include "daemon/model/progress.h"
#include "daemon/report/public_ranks.h"
#include "daemon/report/status_view.h"

namespace rollcall {
namespace {

// For one turn on a worker; then the other jobs have theirs.
constexpr int64_t kApplyWithinNs = 20'000'000;
// A diagnosis that takes long leaves most of the worker's time to the ticks.
constexpr int64_t kPauseTimesCost = 4;
// Until the next search for jobs that share something, after one that has found none.
constexpr int64_t kSearchAgainNs = 2 * kSecond;

// A lost host never reports the end of its processes.
bool AllEndedOrSilent(const JobState& state) {
  return std::all_of(state.processes.begin(), state.processes.end(),
                     [](const Process& process) { return HasEnded(process) || IsSilent(process); });
}

}  // namespace

bool JobRunner::Post(std::shared_ptr<TickInTransit> tick, size_t part) {
  const MutexLock lock(mutex_);
  if (is_over_) return false;
  mail_.push_back({std::move(tick), part});
  return true;
}

void JobRunner::DiagnoseNext() {
  const MutexLock lock(mutex_);
  diagnose_next_ = true;
}

bool JobRunner::IsIdle() const {
  const MutexLock lock(mutex_);
  return mail_.empty() && !is_running_ && !diagnose_next_;
}

bool JobRunner::is_over() const {
  const MutexLock lock(mutex_);
  return is_over_;
}

int64_t JobRunner::Run() {
  {
    const MutexLock lock(mutex_);
    is_running_ = true;
  }
  const bool has_more = ApplyMail();
  const int64_t now_ns = parts_.timeline->Now();
  if (IsDiagnosisDue(now_ns)) Diagnose(now_ns);
  const int64_t wake_ns = NextWakeNs();
  const MutexLock lock(mutex_);
  is_running_ = false;
  if (is_over_) return WorkerPool::kNever;
  if (has_more || !mail_.empty() || diagnose_next_) return WorkerPool::kAtOnce;
  return SteadyNs() + std::max<int64_t>(wake_ns - parts_.timeline->Now(), 0);
}

// True if there is more.
bool JobRunner::ApplyMail() {
  const int64_t until_ns = SteadyNs() + kApplyWithinNs;
  do {
    Mail mail;
    {
      const MutexLock lock(mutex_);
      if (mail_.empty()) return false;
      mail = std::move(mail_.front());
      mail_.pop_front();
    }
    const RoutedTick& routed = mail.tick->routed();
    const RoutedTick::Part& part = routed.parts[mail.part];
    part.job->Apply(mail.tick->tick(), routed, part);
  } while (SteadyNs() < until_ns);
  return true;
}

bool JobRunner::IsDiagnosisDue(int64_t now_ns) {
  const MutexLock lock(mutex_);
  return std::exchange(diagnose_next_, false) || now_ns >= next_ns_;
}

// A job whose processes have all ended rests until it is forgotten, unless a tick changes it. An
// agent that was silent may return without a change.
int64_t JobRunner::NextWakeNs() const {
  const bool rests = ended_ns_ != 0 && !is_any_silent_ && parts_.store->Version(key_) == version_ &&
                     !parts_.incidents->NeedsDiagnosis(key_);
  return rests ? std::max(next_ns_, ended_ns_ + options_.keep_ended_ns) : next_ns_;
}

// Another diagnosis would find what the last one found.
bool JobRunner::IsUnchanged(uint64_t version, int64_t now_ns) const {
  return version == version_ && now_ns < diagnoser_.NextDueNs() && now_ns < start_.NextDueNs() &&
         !recorders_.IsWaiting() && !parts_.rates->IsDue(key_, now_ns) &&
         !parts_.incidents->NeedsDiagnosis(key_) &&
         !(parts_.pairs != nullptr && parts_.pairs->IsSummoned(key_, now_ns));
}

void JobRunner::Diagnose(int64_t now_ns) {
  const int64_t begun_ns = SteadyNs();
  if (parts_.ownership != nullptr && !parts_.ownership->Owns(key_)) return Release();
  // Newer attempts took its room, whether its processes had ended or not.
  if (!parts_.store->jobs().Has(key_)) return Forget(now_ns);
  parts_.store->UpdateHeard(key_, parts_.timeline->counts_from_ns());
  const uint64_t version = parts_.store->Version(key_);
  next_ns_ = now_ns + options_.interval_ns;
  if (ended_ns_ != 0 && version == version_) {
    // No report closes the incident of a job whose hosts are lost.
    const bool is_needed = parts_.incidents->NeedsDiagnosis(key_);
    if ((is_any_silent_ || !is_needed) && now_ns - ended_ns_ >= options_.keep_ended_ns) {
      return Forget(now_ns);
    }
    const bool is_summoned = parts_.pairs != nullptr && parts_.pairs->IsSummoned(key_, now_ns);
    if (!is_needed && !is_summoned) return;
  }
  if (IsUnchanged(version, now_ns)) return;
  Wanted wanted = Look(now_ns);
  if (wanted.partners) wanted = Look(now_ns);
  version_ = version;
  for (const StackRequest& request : wanted.stacks) parts_.stacks->Request(request);
  if (parts_.host_facts != nullptr) parts_.host_facts->Request(wanted.host_facts);
  const int64_t cost_ns = SteadyNs() - begun_ns;
  parts_.counters->AddTick(static_cast<double>(cost_ns) / 1e9);
  next_ns_ = now_ns + std::max(options_.interval_ns, kPauseTimesCost * cost_ns);
}

// A look at the hosts of a suspected hang.
HostFactsRequest JobRunner::NextHostFacts(const JobState& state,
                                          const std::vector<int32_t>& involved) {
  if (involved.empty()) return {};
  const JobBrief brief = parts_.incidents->reader().Brief(key_);
  return host_facts_.Next(state, brief.live ? brief.live->id : "", involved);
}

void JobRunner::AskForGpuDumps(std::vector<GpuDumpTarget> targets) {
  if (parts_.gpu_dumps == nullptr) return;
  const std::optional<JobBrief::Live> live = parts_.incidents->reader().Brief(key_).live;
  const std::string incident = live && live->is_confirmed ? live->id : "";
  const auto request = gpu_dumps_.Next(key_, incident, std::move(targets));
  if (request) parts_.gpu_dumps->Ask(*request);
}

JobRunner::Wanted JobRunner::Look(int64_t now_ns) {
  const int64_t began_ns = parts_.store->BeganNs(key_);
  const std::optional<JoinedJobs> joined = FindPartners(now_ns);
  Wanted wanted;
  parts_.store->Read(key_, [&](const JobState& state) {
    wanted = Judge(state, now_ns, began_ns, joined ? &*joined : nullptr);
  });
  return wanted;
}

std::optional<JoinedJobs> JobRunner::FindPartners(int64_t now_ns) {
  if (parts_.pairs == nullptr) return std::nullopt;
  const bool is_due =
      may_have_partners_ && (found_none_ns_ == 0 || now_ns - found_none_ns_ >= kSearchAgainNs);
  if (!is_due && !parts_.pairs->IsSummoned(key_, now_ns)) return std::nullopt;
  std::optional<JoinedJobs> joined = parts_.pairs->Find(key_, now_ns);
  found_none_ns_ = joined ? 0 : now_ns;
  return joined;
}

// True if it has not been searched for them since the job hangs.
bool JobRunner::AsksForPartners(const JobState& state, const std::vector<Verdict>& verdicts) {
  const bool hangs = std::any_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) {
    return !IsWarning(v.cause) && v.cause != Cause::kStandstill;
  });
  const bool may_have =
      parts_.pairs != nullptr && hangs && (!OpenCommunicators(state).empty() || WaitsForKey(state));
  if (!may_have) found_none_ns_ = 0;
  return !std::exchange(may_have_partners_, may_have) && may_have;
}

// The verdicts by the states of all, in place of those by the job's own state. Returns the job that
// shows why this job waits, if another one does.
std::optional<Referral> JobRunner::JudgeJoined(const JoinedJobs& joined, int64_t now_ns,
                                               std::vector<Verdict>* verdicts) {
  OpenedNs opened_ns;
  for (const JoinedJobs::Part& part : joined.parts) {
    const std::optional<JobBrief::Live> live = parts_.incidents->reader().Brief(part.key).live;
    opened_ns.push_back(live ? std::make_optional(live->opened_ns) : std::nullopt);
  }
  PairVerdicts split =
      SplitVerdicts(joined, rollcall::Diagnose(joined.state, now_ns, options_.limits), opened_ns);
  verdicts->erase(std::remove_if(verdicts->begin(), verdicts->end(),
                                 [](const Verdict& v) { return !IsWarning(v.cause); }),
                  verdicts->end());
  verdicts->insert(verdicts->begin(), std::make_move_iterator(split.own.begin()),
                   std::make_move_iterator(split.own.end()));
  if (!split.told_by) return std::nullopt;
  parts_.pairs->Summon(*split.told_by, key_, now_ns);
  return Referral{*std::move(split.told_by), std::move(split.summary)};
}

JobRunner::Wanted JobRunner::Judge(const JobState& state, int64_t now_ns, int64_t began_ns,
                                   const JoinedJobs* joined) {
  std::vector<Verdict> verdicts = diagnoser_.Run(state, now_ns, options_.limits);
  if (AsksForPartners(state, verdicts)) {
    Wanted wanted;
    wanted.partners = true;
    return wanted;
  }
  std::optional<Referral> referral;
  if (joined != nullptr) referral = JudgeJoined(*joined, now_ns, &verdicts);
  const bool is_told = referral.has_value();
  if (parts_.pairs != nullptr) parts_.pairs->SetReferral(key_, std::move(referral));
  if (parts_.rates->IsDue(key_, now_ns)) {
    parts_.rates->Count(key_, now_ns, CallsEntered(state), PublicRanks(state).count());
  }
  const bool hangs = std::any_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) {
    return !IsWarning(v.cause) && v.cause != Cause::kStandstill;
  });
  const SamplesWanted samples = start_.Next(state, hangs, now_ns, options_.limits);
  if (!is_told) recorders_.Complete(state, now_ns, options_.limits, &verdicts);
  const std::vector<int32_t> involved = InvolvedProcesses(verdicts);
  std::vector<GpuDumpTarget> gpus;
  if (parts_.gpu_dumps != nullptr) gpus = ChooseGpuDumps(state, verdicts);
  Wanted wanted;
  wanted.stacks = parts_.incidents->Apply(state, std::move(verdicts), now_ns, began_ns);
  wanted.host_facts = NextHostFacts(state, involved);
  AskForGpuDumps(std::move(gpus));
  if (!samples.processes.empty()) {
    wanted.stacks.push_back(MakeStackRequest(state, samples.processes));
    wanted.stacks.back().children = samples.children;
  }
  is_any_silent_ = std::any_of(state.processes.begin(), state.processes.end(), IsSilent);
  if (!AllEndedOrSilent(state)) {
    ended_ns_ = 0;
  } else if (ended_ns_ == 0) {
    ended_ns_ = now_ns;
  }
  return wanted;
}

void JobRunner::Forget(int64_t now_ns) {
  if (!parts_.store->places()->Forget(key_)) return;
  parts_.incidents->Forget(key_, now_ns);
  BeginAnew();
}

void JobRunner::Release() {
  if (parts_.store->jobs().Has(key_) && !parts_.store->places()->Forget(key_)) return;
  parts_.incidents->takeover().ReleaseUnowned(key_);
  BeginAnew();
}

void JobRunner::BeginAnew() {
  parts_.rates->Forget(key_);
  if (parts_.pairs != nullptr) parts_.pairs->Forget(key_);
  diagnoser_ = Diagnoser();
  may_have_partners_ = false;
  found_none_ns_ = 0;
  start_ = StartWatch();
  host_facts_ = HostFactsWatch();
  recorders_ = RecorderWatch(parts_.recorders);
  gpu_dumps_ = GpuDumpWatch();
  ended_ns_ = 0;
  version_ = 0;
  const MutexLock lock(mutex_);
  // The store may have begun another job of this key meanwhile.
  is_over_ = mail_.empty();
}

}  // namespace rollcall

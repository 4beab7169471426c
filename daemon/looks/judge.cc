// SPDX-License-Identifier: Apache-2.0
#include "daemon/looks/judge.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/durations.h"
#include "daemon/agents/stack_limits.h"
#include "daemon/diagnosis/diagnose.h"
#include "daemon/diagnosis/life/incident_life.h"
#include "daemon/diagnosis/standing/standing_ranks.h"
#include "daemon/diagnosis/versions.h"
#include "daemon/looks/group.h"
#include "daemon/looks/look_state.h"
#include "daemon/looks/unanswered.h"
#include "daemon/model/progress.h"
#include "daemon/model/stand_kinds.h"
#include "daemon/report/host_facts_proto.h"
#include "daemon/report/incident_proto.h"
#include "daemon/words/evidence.h"
#include "daemon/words/rank_ranges.h"
#include "daemon/words/terms.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr int64_t kLeastTogetherNs = 3 * kSecond / 2;  // that all ranks must be seen to stand
constexpr double kShareOfLook = 0.7;                   // of the time for which all are seen
constexpr int64_t kNeverNs = 1000 * 3600 * kSecond;
constexpr size_t kMostStacks = 64;  // in an incident
constexpr size_t kMostLeftBehindNamed = 4;
constexpr size_t kMostLogs = 64;  // of a job

using Looks = std::vector<v1::HostLook>;

class JobJudge {
 public:
  JobJudge(const Looks& looks, const LookGroup& group)
      : looks_(looks),
        group_(group),
        state_(MakeLookState(looks, group)),
        together_ns_(SeenTogetherNs()),
        limits_(MakeLimits()) {}

  LookedAtJob Judge() {
    FillFacts();
    std::vector<Verdict> verdicts = Diagnose(state_.job, state_.now_ns, limits_);
    for (Verdict& verdict : verdicts) Weigh(&verdict);
    const bool hangs = !verdicts.empty() && !IsWarning(verdicts.front().cause);
    if (hangs && IsAtWork(verdicts.front())) {
      verdicts.clear();
      result_.why = "a rank that the others wait for receives data, or what it has started works";
    } else if (!hangs) {
      verdicts.clear();
      Explain();
    }
    MakeIncident(std::move(verdicts));
    result_.group = group_;
    return std::move(result_);
  }

 private:
  const v1::ProcessLook& At(size_t member) const {
    return ProcessAt(looks_, group_.members[member]);
  }

  bool IsZombie(size_t member) const { return At(member).found_by() == kFoundAsZombie; }

  // From the last of the first samples to the first of the last ones: how long all ranks are seen
  // together.
  int64_t SeenTogetherNs() const {
    int64_t from_ns = INT64_MIN, to_ns = INT64_MAX;
    for (const LookedAt& member : group_.members) {
      const v1::HostLook& look = looks_[member.look];
      const auto& samples = ProcessAt(looks_, member).samples();
      if (samples.size() < 2) continue;
      from_ns = std::max(from_ns, samples[0].taken_ns() - look.ended_ns());
      to_ns = std::min(to_ns, samples[samples.size() - 1].taken_ns() - look.ended_ns());
    }
    return from_ns == INT64_MIN ? 0 : to_ns - from_ns;
  }

  // A wait counts if it lasts for most of the look: who looks longer asks for longer waits.
  Limits MakeLimits() const {
    Limits limits;
    limits.is_look = true;
    limits.suspect_after_ns =
        together_ns_ < kLeastTogetherNs
            ? kNeverNs
            : static_cast<int64_t>(static_cast<double>(together_ns_) * kShareOfLook);
    limits.suspect_floor_ns = limits.suspect_after_ns;
    limits.hang_after_ns = limits.suspect_after_ns;
    limits.absent_for_good_ns = limits.suspect_after_ns;
    return limits;
  }

  void FillFacts() {
    std::set<std::string> hosts;
    for (size_t i = 0; i < group_.members.size(); ++i) {
      hosts.insert(looks_[group_.members[i].look].host());
      result_.ranks += !IsZombie(i);
      result_.world_size = std::max(result_.world_size, At(i).process().identity().world_size());
    }
    result_.hosts.assign(hosts.begin(), hosts.end());
    result_.is_recorded = state_.is_recorded;
    if (!state_.is_numbered && result_.ranks > 1) {
      result_.unseen.emplace_back(
          "no variable gives the ranks their numbers: here they count in order of their processes");
    }
    for (std::string& line : UnansweredHosts(looks_)) result_.unseen.push_back(std::move(line));
    AddMissingStacks();
    AddLeftBehind();
  }

  // Processes without two samples, by the reason.
  void AddMissingStacks() {
    std::map<std::string, std::vector<int32_t>> reasons;
    for (size_t i = 0; i < group_.members.size(); ++i) {
      if (IsZombie(i) || At(i).unseen().empty()) continue;
      reasons[At(i).unseen()].push_back(RankOf(i));
    }
    for (const auto& [reason, ranks] : reasons) {
      result_.unseen.push_back(absl::StrCat(RanksInWords(ranks), ": ", reason));
    }
  }

  // They may hold the address or the GPUs of the job.
  void AddLeftBehind() {
    const size_t named = std::min(group_.left_behind.size(), kMostLeftBehindNamed);
    for (size_t i = 0; i < named; ++i) {
      const v1::ProcessUpdate& process = ProcessAt(looks_, group_.left_behind[i]).process();
      result_.unseen.push_back(absl::StrCat(
          "process ", process.pid(), " on ", looks_[group_.left_behind[i].look].host(),
          " has rank ", process.identity().global_rank(),
          " of this job, too: an earlier run may have left it behind, and it was left out"));
    }
    const size_t more = group_.left_behind.size() - named;
    if (more > 0) {
      result_.unseen.push_back(
          absl::StrCat(CountInWords(more, "more process", "more processes"), " like this"));
    }
  }

  const Process* ProcessOf(size_t member) const {
    const int32_t index = state_.of_member[member];
    return index < 0 ? nullptr : &state_.job.processes[static_cast<size_t>(index)];
  }

  int32_t RankOf(size_t member) const {
    const Process* process = ProcessOf(member);
    return process == nullptr ? -1 : process->global_rank;
  }

  // Some seconds of a job without records are not certainty, and file systems often take longer.
  static void Weigh(Verdict* verdict) {
    if (verdict->certainty == Certainty::kCertain) verdict->certainty = Certainty::kLikely;
    const bool is_slow_disk =
        verdict->cause == Cause::kStandstill && verdict->standstill.in == StandKind::kStorage;
    if (is_slow_disk) verdict->certainty = Certainty::kPossible;
  }

  // Whether a culprit waits for something outside of the job that moves.
  bool IsAtWork(const Verdict& verdict) const {
    return std::any_of(verdict.culprits.begin(), verdict.culprits.end(), [this](const Culprit& c) {
      const Process* process = FindProcess(state_.job, c.process);
      return process != nullptr && (process->receives > 0 || !process->children_at_work.empty());
    });
  }

  struct Ranks {
    std::vector<int32_t> moving, standing, stopped, traced, unknown;
    std::string moves_at;
    bool any_waits_for_device = false;
  };

  int32_t SamplesTaken(size_t member) const {
    return static_cast<int32_t>(
        std::count_if(At(member).samples().begin(), At(member).samples().end(),
                      [](const v1::StackSample& sample) { return HasFrames(sample.stack()); }));
  }

  Ranks Sort() const {
    Ranks ranks;
    for (size_t i = 0; i < group_.members.size(); ++i) {
      const Process* process = ProcessOf(i);
      if (process == nullptr || HasEnded(*process)) continue;
      const Standing* standing = process->standing.get();
      if (process->traced) {
        ranks.traced.push_back(RankOf(i));
      } else if (IsSuspended(*process)) {
        ranks.stopped.push_back(RankOf(i));
      } else if (standing == nullptr || SamplesTaken(i) < 2) {
        ranks.unknown.push_back(RankOf(i));
      } else if (standing->samples < SamplesTaken(i) || standing->rests) {
        ranks.moving.push_back(RankOf(i));
        if (ranks.moves_at.empty()) ranks.moves_at = process->place.at;
      } else {
        ranks.standing.push_back(RankOf(i));
        const bool is_device = standing->place.in.kind == StandKind::kGpu;
        ranks.any_waits_for_device = ranks.any_waits_for_device || is_device || standing->spins;
      }
    }
    return ranks;
  }

  // Why there is no verdict.
  void Explain() {
    const Ranks ranks = Sort();
    if (!ranks.moving.empty()) return TellWhoMoves(ranks);
    const auto cannot_tell = [this](const std::string& why) {
      result_.outcome = LookedAtJob::Outcome::kCannotTell;
      result_.why = why;
    };
    if (!ranks.traced.empty()) {
      return cannot_tell(absl::StrCat(RanksInWords(ranks.traced), " ",
                                      PluralForm(ranks.traced.size(), "is", "are"),
                                      " in a debugger"));
    }
    if (!ranks.unknown.empty()) {
      return cannot_tell(absl::StrCat("the stacks of ", RanksInWords(ranks.unknown),
                                      " could not be taken", DeathsInWords()));
    }
    if (ranks.standing.empty() && !ranks.stopped.empty()) {
      return cannot_tell(absl::StrCat(RanksInWords(ranks.stopped), " ",
                                      PluralForm(ranks.stopped.size(), "is", "are"),
                                      " stopped by a signal or a freezer"));
    }
    if (together_ns_ < kLeastTogetherNs && ranks.standing.size() > 1) {
      return cannot_tell("taking the stacks of all ranks took too long to see them stand together");
    }
    if (static_cast<size_t>(std::max(result_.world_size, 1)) > result_.ranks &&
        !ranks.standing.empty()) {
      return cannot_tell(absl::StrCat(result_.ranks, " of ", result_.world_size,
                                      " ranks are seen: the others may be on other hosts, at which "
                                      "--slurm, --kubernetes and --hosts look"));
    }
    if (ranks.any_waits_for_device && ranks.standing.size() > 1) {
      result_.needs_counts = true;
      return cannot_tell(
          "all ranks wait at one line, in a library that asks again and again: a job that goes on "
          "looks alike");
    }
    result_.why = "its ranks wait for work, or sleep";
  }

  // "; rank 1 died (killed by signal 9)": needs no stack, and often is the answer. "": none died.
  std::string DeathsInWords() const {
    std::map<std::string, std::vector<int32_t>> deaths;
    for (size_t i = 0; i < group_.members.size(); ++i) {
      const Process* process = ProcessOf(i);
      if (process == nullptr || process->liveness != Liveness::kDied) continue;
      deaths[DescribeEnding(state_.job, state_.of_member[i], nullptr)].push_back(RankOf(i));
    }
    std::string text;
    for (const auto& [ending, ranks] : deaths)
      absl::StrAppend(&text, "; ", RanksInWords(ranks), " died (", ending, ")");
    return text;
  }

  void TellWhoMoves(const Ranks& ranks) {
    const std::string at = ranks.moves_at.empty() ? "" : absl::StrCat(" (", ranks.moves_at, ")");
    result_.why = ranks.standing.empty()
                      ? "its ranks move"
                      : absl::StrCat(RanksInWords(ranks.moving), " ",
                                     PluralForm(ranks.moving.size(), "moves", "move"), at, ", ",
                                     RanksInWords(ranks.standing), " ",
                                     PluralForm(ranks.standing.size(), "waits", "wait"));
  }

  void MakeIncident(std::vector<Verdict> verdicts) {
    Incident incident;
    incident.id = absl::StrCat(group_.name, "-1");
    incident.job = state_.job.key;
    incident.job.job = group_.name;
    incident.verdicts = std::move(verdicts);
    incident.versions = VersionsInUse(state_.job);
    if (!incident.verdicts.empty()) {
      incident.opened_ns = incident.verdicts.front().since_ns;
    }
    std::set<int32_t> culprits;
    if (!incident.verdicts.empty()) {
      for (const Culprit& culprit : incident.verdicts.front().culprits) {
        culprits.insert(culprit.rank);
      }
    }
    result_.incident = ToProto(incident);
    result_.incident.set_rollcall_version(ROLLCALL_VERSION);
    result_.incident.set_ranks(static_cast<int32_t>(result_.ranks));
    AddStacks(culprits);
    AddLogs(culprits);
    if (!result_.incident.verdicts().empty()) AddHostFacts();
    Conclude(state_.now_ns, &result_);
  }

  // Adds those of the culprits first.
  void AddStacks(const std::set<int32_t>& culprits) {
    for (const bool of_culprits : {true, false}) {
      for (size_t i = 0; i < group_.members.size(); ++i) {
        const bool is_culprit = culprits.count(RankOf(i)) != 0;
        if (At(i).samples().empty() || is_culprit != of_culprits) continue;
        if (static_cast<size_t>(result_.incident.stacks_size()) == kMostStacks) return;
        v1::ProcessStack* stack = result_.incident.add_stacks();
        *stack = At(i).samples(At(i).samples_size() - 1).stack();
        LimitStack(stack);
        stack->set_rank(RankOf(i));
        stack->set_culprit(is_culprit);
        stack->set_host(looks_[group_.members[i].look].host());
      }
    }
  }

  void AddLogs(const std::set<int32_t>& culprits) {
    for (size_t look = 0; look < looks_.size(); ++look) {
      for (const v1::LogEnd& log : looks_[look].logs()) {
        LogOfRanks of = {{}, false, looks_[look].host(), log};
        for (size_t i = 0; i < group_.members.size(); ++i) {
          const bool writes =
              group_.members[i].look == look &&
              std::count(log.pids().begin(), log.pids().end(), At(i).process().pid()) > 0;
          if (!writes) continue;
          of.ranks.push_back(RankOf(i));
          of.of_culprit = of.of_culprit || culprits.count(RankOf(i)) != 0;
        }
        if (!of.ranks.empty()) result_.logs.push_back(std::move(of));
      }
    }
    std::stable_partition(result_.logs.begin(), result_.logs.end(),
                          [](const LogOfRanks& log) { return log.of_culprit; });
    if (result_.logs.size() > kMostLogs) result_.logs.resize(kMostLogs);
  }

  // What may interest people who look for the cause.
  void AddHostFacts() {
    for (const auto& [host, facts] : state_.job.host_facts)
      AddToIncident(WorthALook(host, facts, state_.now_ns), &result_.incident);
  }

  const Looks& looks_;
  const LookGroup& group_;
  const LookState state_;
  const int64_t together_ns_;
  const Limits limits_;
  LookedAtJob result_;
};

}  // namespace

std::vector<LookedAtJob> JudgeLooks(const Looks& looks) {
  std::vector<LookedAtJob> jobs;
  for (const LookGroup& group : GroupLooks(looks)) jobs.push_back(JobJudge(looks, group).Judge());
  return jobs;
}

void Conclude(int64_t now_ns, LookedAtJob* job) {
  v1::Incident& incident = job->incident;
  if (incident.verdicts().empty()) return;
  const v1::Verdict& root = incident.verdicts(0);
  const bool hangs = root.certainty() != CertaintyName(Certainty::kPossible);
  job->outcome = hangs ? LookedAtJob::Outcome::kHangs : LookedAtJob::Outcome::kCannotTell;
  job->why.clear();
  if (!hangs) {
    job->why = root.idle()
                   ? "the ranks that the others wait for may be idle: they wait for requests"
                   : "what was seen makes this hang possible, and shows no more";
  }
  incident.set_state(
      IncidentStateName(hangs ? IncidentState::kConfirmed : IncidentState::kSuspected));
  incident.clear_confirmed_at();
  if (hangs) *incident.mutable_confirmed_at() = ToTimestamp(now_ns);
}

void KeepUnseen(LookedAtJob* job) {
  if (job->incident.verdicts().empty()) return;
  auto& missing = *job->incident.mutable_verdicts(0)->mutable_missing_evidence();
  for (const std::string& line : job->unseen) {
    if (std::find(missing.begin(), missing.end(), line) == missing.end()) *missing.Add() = line;
  }
}

}  // namespace rollcall

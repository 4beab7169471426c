// SPDX-License-Identifier: Apache-2.0
#include "daemon/looks/ask_ras.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/looks/looked_at.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr char kNotAskedThere[] =
    "it was not asked: agents of its hosts are at other daemons, or the daemon is of another release";

bool UsesNccl(const v1::ProcessLook& process) {
  return std::find(process.libraries().begin(), process.libraries().end(), "nccl") !=
         process.libraries().end();
}

// Returns true also if it is unknown what the rank does.
bool MayChangeCommunicators(const v1::ProcessLook& process) {
  if (process.found_by() == kFoundAsZombie) return false;
  const auto& samples = process.samples();
  if (samples.empty() || !HasFrames(samples[samples.size() - 1].stack())) return true;
  return std::any_of(samples.begin(), samples.end(), [](const v1::StackSample& sample) {
    return IsInCommunicatorLife(sample.stack());
  });
}

bool IsAnyUnanswered(const std::vector<v1::HostLook>& looks) {
  return std::any_of(looks.begin(), looks.end(),
                     [](const v1::HostLook& look) { return !look.error().empty(); });
}

bool MayBeAsked(const LookedAtJob& job) {
  return !job.incident.verdicts().empty() || job.needs_counts;
}

// Judges a job of which the stacks do not show whether it stands. The counts of one moment differ
// in a healthy job, too: only those that stay are a hang.
void Promote(const v1::RasAnswer& first, const v1::RasAnswer& second, int64_t now_ns,
             LookedAtJob* job) {
  v1::Incident& incident = job->incident;
  if (incident.verdicts().empty()) return;
  if (!HaveSameCounts(first, second)) {
    incident.clear_verdicts();
    if (second.text().empty()) return;
    job->outcome = LookedAtJob::Outcome::kGoesOn;
    job->why = "NCCL's RAS counted other calls some seconds later";
    return;
  }
  job->outcome = LookedAtJob::Outcome::kHangs;
  job->why.clear();
  incident.set_state("confirmed");
  *incident.mutable_opened_at() = ToTimestamp(now_ns);
  *incident.mutable_confirmed_at() = ToTimestamp(now_ns);
}

// What the looks have of answers, each once, in their order.
class AnswersInLooks {
 public:
  explicit AnswersInLooks(const std::vector<v1::HostLook>& looks) : looks_(looks) {}

  v1::RasAnswer Next(const RasPlace& place) {
    int& next = next_[{place.look, place.pids}];
    int at = 0;
    for (const v1::RasAnswer& answer : looks_[place.look].ras()) {
      const std::vector<pid_t> pids(answer.asked_for().begin(), answer.asked_for().end());
      if (pids != place.pids || at++ != next) continue;
      ++next;
      return answer;
    }
    v1::RasAnswer none;
    none.set_error(kNotAskedThere);
    return none;
  }

 private:
  const std::vector<v1::HostLook>& looks_;
  std::map<std::pair<size_t, std::vector<pid_t>>, int> next_;
};

}  // namespace

bool IsInCommunicatorLife(const v1::ProcessStack& stack) {
  for (const v1::ThreadStack& thread : stack.threads()) {
    for (const v1::Frame& frame : thread.frames()) {
      for (const char* begin : {"ncclGroupEnd", "ncclCommInit", "ncclCommSplit", "ncclCommShrink",
                                "ncclCommGrow", "ncclCommDestroy", "ncclCommAbort",
                                "ncclCommFinalize", "ncclCommRevoke", "pncclComm"}) {
        if (absl::StartsWith(frame.function(), begin)) return true;
      }
    }
  }
  return false;
}

std::optional<RasPlace> ChooseRasPlace(const std::vector<v1::HostLook>& looks,
                                       const LookGroup& group) {
  std::map<std::pair<size_t, std::string>, std::vector<pid_t>> places;
  RasPlace place;
  place.changes_communicators = IsAnyUnanswered(looks);
  for (const LookedAt& member : group.members) {
    const v1::ProcessLook& process = ProcessAt(looks, member);
    if (!UsesNccl(process)) continue;
    place.changes_communicators = place.changes_communicators || MayChangeCommunicators(process);
    places[{member.look, process.ras_address()}].push_back(process.process().pid());
  }
  for (auto& [at, pids] : places) {
    if (pids.size() <= place.pids.size()) continue;
    place.look = at.first;
    place.address = at.second;
    place.pids = std::move(pids);
  }
  if (place.pids.empty()) return std::nullopt;
  return place;
}

std::vector<RasMember> RasMembers(const std::vector<v1::HostLook>& looks, const LookGroup& group) {
  std::vector<RasMember> members;
  for (const LookedAt& at : group.members) {
    const v1::ProcessUpdate& process = ProcessAt(looks, at).process();
    const v1::Identity& identity = process.identity();
    if (identity.global_rank() < 0) continue;
    members.push_back(
        {identity.global_rank(), looks[at.look].host(), process.pid(), identity.inner_pid()});
  }
  return members;
}

void AskRasOfJobs(const std::vector<v1::HostLook>& looks, std::vector<LookedAtJob>* jobs,
                  const AskRas& ask, const std::function<void()>& pause) {
  for (LookedAtJob& job : *jobs) {
    if (!MayBeAsked(job)) continue;
    std::optional<RasPlace> place = ChooseRasPlace(looks, job.group);
    if (!place) continue;
    const bool sees_all = static_cast<size_t>(std::max(job.world_size, 0)) <= job.ranks;
    place->changes_communicators = place->changes_communicators || !sees_all;
    const v1::RasAnswer answer = ask(*place);
    JoinRas(answer, RasMembers(looks, job.group), &job.incident);
    if (!job.needs_counts) Conclude(looks[place->look].ended_ns(), &job);
    if (answer.text().empty()) job.unseen.push_back(absl::StrCat("NCCL's RAS: ", answer.error()));
    if (job.needs_counts && !job.incident.verdicts().empty()) {
      pause();
      Promote(answer, ask(*place), looks[place->look].ended_ns(), &job);
    }
  }
}

std::vector<LookedAtJob> JudgeWithRas(const std::vector<v1::HostLook>& looks) {
  std::vector<LookedAtJob> jobs = JudgeLooks(looks);
  AnswersInLooks answers(looks);
  AskRasOfJobs(
      looks, &jobs, [&answers](const RasPlace& place) { return answers.Next(place); }, [] {});
  return jobs;
}

}  // namespace rollcall

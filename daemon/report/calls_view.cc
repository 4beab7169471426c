// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/calls_view.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/model/first_calls.h"
#include "daemon/model/habit.h"
#include "daemon/model/progress.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/public_ranks.h"
#include "daemon/report/rank_state.h"
#include "daemon/words/communicator_names.h"

namespace rollcall {
namespace {

double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string OnGpu(const Member& member, const CallRecord& record) {
  if (!member.has_markers || !TakesPosition(record)) return "";
  if (record.position < member.finished) return "finished";
  return record.position < member.started ? "started" : "queued";
}

void FillSpan(const JobState& job, const Member& member, const CallRecord& record, bool waits,
              v1::CallSpan* span) {
  *span->mutable_call() = ToProto(record.args, record.position);
  const Process* process = FindProcess(job, member.process);
  if (process != nullptr && record.site > 0 && record.site <= process->sites.size()) {
    span->mutable_call()->set_code(Utf8(process->sites[record.site - 1u]));
  }
  span->set_entered_seconds(Seconds(record.entered_ns));
  span->set_returned_seconds(Seconds(record.returned_ns));
  span->set_gpu(OnGpu(member, record));
  span->set_waits(waits);
}

// The newest steps that the answer shows whole.
void FillStep(const v1::CommunicatorCalls& calls, const std::vector<CallToken>& tokens,
              v1::RepeatedCalls* step) {
  constexpr size_t kLeastPeriod = 2;  // where all calls are equal, no call begins a step
  if (tokens.empty()) return;
  const size_t newest = tokens.size() - 1;  // it may be the first of a wrong step
  const Habit habit = JudgeCall(tokens, newest).habit;
  if (habit.period < kLeastPeriod) return;
  const auto entered = [&calls](size_t i) {
    return calls.calls(static_cast<int>(i)).entered_seconds();
  };
  std::vector<double> seconds;
  for (size_t i = newest - habit.kept + habit.period; i < newest; ++i) {
    seconds.push_back(entered(i) - entered(i - habit.period));
  }
  if (seconds.empty()) return;
  const auto median = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), median, seconds.end());
  step->set_calls(static_cast<int32_t>(habit.period));
  step->set_seconds(*median);
}

}  // namespace

void FillMemberCalls(const JobState& job, const RankStates& states, const Communicator& comm,
                     int32_t rank, const Member& member, int limit, v1::CommunicatorCalls* calls) {
  v1::CommunicatorRef* ref = calls->mutable_communicator();
  ref->set_id(absl::StrCat(absl::Hex(comm.id, absl::kZeroPad16)));
  ref->set_name(Utf8(NameForPeople(job, comm)));
  ref->set_size(comm.size);
  ref->set_kind(CommKindName(comm.kind));
  calls->set_rank_in_communicator(rank);
  calls->set_entered(static_cast<double>(member.entered));
  calls->set_finished(member.has_markers ? static_cast<double>(member.finished) : -1);
  calls->set_state(std::string(1, states.Of(comm, member, MostEntered(comm))));
  const Process* process = FindProcess(job, member.process);
  if (process != nullptr && HasEnded(*process))
    calls->set_ended_seconds(Seconds(process->ended_ns));
  const auto wait = FindWait(job, comm, member);
  const size_t count = member.records.size();
  std::vector<CallToken> tokens;
  for (size_t i = count - std::min(count, static_cast<size_t>(limit)); i < count; ++i) {
    const CallRecord& record = member.records[i];
    const bool waits =
        wait.has_value() && TakesPosition(record) && record.position == wait->position;
    FillSpan(job, member, record, waits, calls->add_calls());
    tokens.push_back(SignatureOf(record.args));
  }
  v1::RepeatedCalls step;
  FillStep(*calls, tokens, &step);
  if (step.calls() > 0) *calls->mutable_step() = step;
}

namespace {

// The calls that each communicator of a wanted rank may have.
template <typename Wanted>
int CallsOfEach(const JobState& job, const Wanted& wanted, int limit) {
  int seats = 0;
  for (const auto& [id, comm] : job.communicators) {
    for (const auto& [rank, member] : comm.members) {
      if (wanted.count(member.process) != 0) ++seats;
    }
  }
  const int share = std::max(kMostCallsOfAnswer / std::max(seats, 1), 1);
  return std::min({limit, kMostCalls, share});
}

}  // namespace

void FillCalls(const JobState& job, const std::vector<int32_t>& ranks, int limit,
               v1::CallsResponse* response) {
  const PublicRanks names(job);
  std::map<int32_t, v1::RankCalls*> wanted;  // by process
  for (const int32_t rank : ranks) {
    const int32_t process = names.FindProcess(rank);
    if (process < 0 || wanted.count(process) > 0) continue;
    if (wanted.size() >= static_cast<size_t>(kMaxRanksOfCalls)) break;
    wanted[process] = nullptr;
  }
  response->mutable_ranks()->Reserve(static_cast<int>(wanted.size()));
  for (auto& [process, calls] : wanted) {
    calls = response->add_ranks();
    calls->set_rank(names.FindRank(process));
  }
  const RankStates states(job);
  const int each = CallsOfEach(job, wanted, limit);
  for (const auto& [id, comm] : job.communicators) {
    for (const auto& [rank, member] : comm.members) {
      const auto at = wanted.find(member.process);
      if (at == wanted.end()) continue;
      FillMemberCalls(job, states, comm, rank, member, each, at->second->add_communicators());
    }
  }
  std::sort(response->mutable_ranks()->begin(), response->mutable_ranks()->end(),
            [](const auto& a, const auto& b) { return a.rank() < b.rank(); });
}

}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/standing/stand_description.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/diagnosis/standing/stand_threads.h"
#include "daemon/model/waits/wait_frames.h"
#include "daemon/words/evidence.h"
#include "daemon/words/stops.h"

namespace rollcall {
namespace {

constexpr size_t kDescribedRanks = 8;

// The ranks that are not culprits; all, if all are.
std::vector<size_t> WaitingRanks(const StandScene& scene, const StandBlame& blame) {
  std::vector<size_t> waiting;
  for (size_t i = 0; i < scene.Count(); ++i) {
    if (blame.culprits.count(i) == 0) waiting.push_back(i);
  }
  if (waiting.empty()) waiting.assign(blame.culprits.begin(), blame.culprits.end());
  return waiting;
}

void AddEnded(const StandScene& scene, Verdict* verdict) {
  const JobState& job = scene.job();
  for (const int32_t process : scene.ranks().ended) {
    Culprit culprit = MakeCulprit(job, process, scene.ProcessAt(process).global_rank, nullptr);
    culprit.ending = DescribeEnding(job, process, nullptr);
    verdict->culprits.push_back(std::move(culprit));
  }
}

void AddStopped(const StandScene& scene, Verdict* verdict) {
  for (const int32_t process : scene.ranks().stopped) {
    verdict->culprits.push_back(
        MakeCulprit(scene.job(), process, scene.ProcessAt(process).global_rank, nullptr));
  }
}

void AddCulprits(const StandScene& scene, const StandBlame& blame, Verdict* verdict) {
  for (const size_t i : blame.culprits) {
    const StandNode& rank = scene.Rank(i);
    verdict->culprits.push_back(MakeCulprit(scene.job(), rank.process, rank.rank, nullptr));
    if (verdict->culprits.size() > kDescribedRanks) continue;
    absl::StrAppend(&verdict->stack_words, scene.ProcessAt(rank.process).stack_words, " ");
  }
  if (blame.shape == StandShape::kStopped) AddStopped(scene, verdict);
  if (blame.shape == StandShape::kEnded) AddEnded(scene, verdict);
}

// Of ranks that all wait in one place, the one with the most telling wait.
size_t FindRepresentative(const StandScene& scene) {
  for (const bool is_for_others : {true, false}) {
    for (size_t i = 0; i < scene.Count(); ++i) {
      const StandFunction& in = scene.Rank(i).in;
      const bool fits = !is_for_others || WhomItIsFor(in.kind) == StandFor::kOthers;
      if (fits && IsNoWaitForWork(in)) return i;
    }
  }
  return 0;
}

// A debugger's stop is that of Rollcall's own sample.
std::string StopOfChild(const StandNode& child) {
  const bool is_stopped = child.child != nullptr && child.child->state == 'T';
  return is_stopped ? StopInWords(child.child->state, "") : "";
}

// "its child 4711 (cat), which waits in a pipe".
std::string OwnChildInWords(const StandNode& child, const std::string& name) {
  const std::string stop = StopOfChild(child);
  if (!stop.empty()) return absl::StrCat("its child ", child.pid, name, ", which is ", stop);
  const std::string in = StandKindInWords(child.in.kind);
  const bool is_a_wait = !in.empty() && child.in.kind != StandKind::kSleep &&
                         WhomItIsFor(child.in.kind) != StandFor::kNobody;
  return absl::StrCat("its child ", child.pid, name,
                      is_a_wait ? absl::StrCat(", which waits in ", in) : "");
}

// "its child 4711 (cat)", "rank 2", "process 812 (python)"; empty if unknown.
std::string OthersInWords(const StandScene& scene, size_t i) {
  const StandNode& rank = scene.Rank(i);
  if (rank.waits_for.empty()) return "";
  const StandNode& other = scene.graph().nodes[rank.waits_for.front()];
  const std::string name = other.name.empty() ? "" : absl::StrCat(" (", other.name, ")");
  if (other.is_child && other.process == rank.process) return OwnChildInWords(other, name);
  if (other.is_child) return absl::StrCat("child ", other.pid, name, " of rank ", other.rank);
  return other.process >= 0 ? absl::StrCat("rank ", other.rank)
                            : absl::StrCat("process ", other.pid, name);
}

bool IsFirstOtherStopped(const StandScene& scene, size_t i) {
  const std::vector<size_t>& others = scene.Rank(i).waits_for;
  return !others.empty() && !StopOfChild(scene.graph().nodes[others.front()]).empty();
}

// No process makes the result for which it waits. A worker without a task is called "ray::IDLE".
bool LacksAWorker(const StandNode& rank) {
  const std::vector<int32_t>& called = rank.standing->sockets.called;
  return rank.in.kind == StandKind::kRay && rank.waits_for.empty() &&
         std::none_of(called.begin(), called.end(), [&rank](int32_t pid) {
           const auto name = rank.standing->names.find(pid);
           return name != rank.standing->names.end() && absl::StartsWith(name->second, "ray::") &&
                  name->second != "ray::IDLE";
         });
}

bool IsLock(StandKind kind) { return kind == StandKind::kLock || kind == StandKind::kSemaphore; }

bool WaitsForTwoLocks(const StandNode& rank) {
  const std::vector<StandThread>& threads = rank.standing->threads;
  return IsLock(rank.in.kind) &&
         std::any_of(threads.begin(), threads.end(),
                     [](const StandThread& thread) { return IsLock(thread.place.in.kind); });
}

void AddPlacesOfCulprits(const StandScene& scene, const StandBlame& blame, Standstill* stand) {
  for (const size_t i : blame.culprits) {
    const StandPlace* place = PlaceOfCulprit(scene, blame, i);
    const bool is_main = place == nullptr || place == &scene.Rank(i).standing->place;
    stand->places.push_back(is_main ? StackPlace() : static_cast<const StackPlace&>(*place));
  }
}

void NameServer(const StandScene& scene, size_t first, Standstill* stand) {
  const StandNode* server = scene.FindChild(scene.ComponentOf(first));
  if (server == nullptr) return;
  stand->server = absl::StrCat("child process ", server->pid,
                               server->name.empty() ? "" : absl::StrCat(" (", server->name, ")"));
  if (server->place != nullptr) stand->server_in = server->place->in.kind;
}

Standstill StandOf(const StandScene& scene, const StandBlame& blame, size_t waiting) {
  const bool has_culprits = !blame.culprits.empty();
  const size_t first = has_culprits ? *blame.culprits.begin() : FindRepresentative(scene);
  const StandFunction in = WaitOfCulprit(scene, blame, first);
  const StandNode& rank = scene.Rank(first);
  Standstill stand;
  stand.shape = blame.shape;
  stand.others_wait_for_them = blame.others_wait_for_them;
  AddPlacesOfCulprits(scene, blame, &stand);
  stand.in = in.kind;
  stand.others_in = scene.KindOf(waiting);
  stand.others = OthersInWords(scene, first);
  stand.other_is_stopped = IsFirstOtherStopped(scene, first);
  stand.lacks_worker = has_culprits && LacksAWorker(rank);
  stand.on = scene.FindLock(first);
  stand.writes = Writes(in);
  if (stand.shape == StandShape::kOwnServer) NameServer(scene, first, &stand);
  stand.in_handler = HasWait(rank.standing->place.functions, waits::kSignalHandler);
  if (has_culprits) stand.lacks_thread = FindLackingThread(scene, blame, first);
  stand.two_locks = has_culprits && WaitsForTwoLocks(rank);
  return stand;
}

std::string WaitInWords(const StandScene& scene, size_t i) {
  const StandNode& rank = scene.Rank(i);
  const std::string in = StandKindInWords(rank.in.kind);
  const std::string for_whom = OthersInWords(scene, i), barrier = scene.BarrierOf(i);
  return absl::StrCat("rank ", rank.rank, ": ",
                      rank.in.name.empty() ? "waits" : absl::StrCat("in ", rank.in.name),
                      in.empty() ? "" : absl::StrCat(" (", in, ")"),
                      barrier.empty() ? "" : absl::StrCat(" \"", barrier, "\""),
                      for_whom.empty() ? "" : absl::StrCat(" for ", for_whom));
}

// The barrier at which all ranks wait, or, of culprits, theirs, at which no other rank waits. Empty
// if the ranks wait elsewhere, or these at several.
std::string FindBarrier(const StandScene& scene, const StandBlame& blame) {
  const bool has_culprits = !blame.culprits.empty();
  if (!has_culprits && blame.shape != StandShape::kAll) return "";
  std::set<std::string> names, others;
  for (size_t i = 0; i < scene.Count(); ++i) {
    const std::string name = scene.BarrierOf(i);
    if (name.empty()) return "";
    const bool is_meant = !has_culprits || blame.culprits.count(i) != 0;
    (is_meant ? names : others).insert(name);
  }
  return names.size() == 1 && others.count(*names.begin()) == 0 ? *names.begin() : "";
}

}  // namespace

void DescribeStandstill(const StandScene& scene, const StandBlame& blame, Verdict* verdict) {
  const std::vector<size_t> waiting = WaitingRanks(scene, blame);
  for (const size_t i : waiting) {
    verdict->waiting_ranks.push_back(scene.Rank(i).rank);
    verdict->waiting_processes.push_back(scene.Rank(i).process);
  }
  AddCulprits(scene, blame, verdict);
  verdict->standstill = StandOf(scene, blame, waiting.front());
  verdict->awaited_key = FindBarrier(scene, blame);
  for (size_t i = 0; i < std::min(scene.Count(), kDescribedRanks); ++i) {
    verdict->evidence.push_back(WaitInWords(scene, i));
  }
}

}  // namespace rollcall

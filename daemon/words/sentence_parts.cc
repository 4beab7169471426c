// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/sentence_parts.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/cut_text.h"
#include "daemon/words/places.h"
#include "daemon/words/rank_ranges.h"
#include "daemon/words/stops.h"
#include "daemon/words/terms.h"
#include "interpose/segment_messages.h"

namespace rollcall {
namespace {

constexpr int64_t kLeastToldNs = 1'000'000'000;  // of a wait that was longer

constexpr size_t kNamedPids = 4;
constexpr size_t kLongestHost = 64;

// "node-17, pid 4121", "node-17, pids 4121, 4122", "3 hosts"; "" if no host is known.
std::string HostsAndPids(const std::vector<Culprit>& culprits) {
  std::set<std::string> hosts;
  std::vector<int32_t> pids;
  for (const Culprit& culprit : culprits) {
    if (!culprit.host.empty()) hosts.insert(CutText(culprit.host, kLongestHost, "..."));
    if (culprit.pid != 0) pids.push_back(culprit.pid);
  }
  if (hosts.empty()) return "";
  if (hosts.size() > 1) return absl::StrCat(hosts.size(), " hosts");
  if (pids.empty() || pids.size() > kNamedPids) return *hosts.begin();
  return absl::StrCat(*hosts.begin(), ", ", PluralForm(pids.size(), "pid ", "pids "),
                      absl::StrJoin(pids, ", "));
}

// "device 1 of process 1", for one rank of a process that holds several; else "".
std::string DeviceAndProcess(const std::vector<Culprit>& culprits) {
  if (culprits.size() != 1 || culprits.front().process_rank < 0) return "";
  if (culprits.front().device < 0) return absl::StrCat("process ", culprits.front().process_rank);
  return absl::StrCat("device ", culprits.front().device, " of process ",
                      culprits.front().process_rank);
}

// " (CUDA graph 3, launch 812, call 3 of 5)"; "" if no graph made the call.
std::string GraphInWords(const GraphCall& call) {
  if (call.graph == 0) return "";
  return absl::StrCat(" (CUDA graph ", call.graph, ", launch ", call.launch, ", call ", call.call,
                      " of ", call.calls, ")");
}

}  // namespace

std::string CulpritsInWords(const std::vector<Culprit>& culprits) {
  return RankRanges(CulpritRanges(culprits)).InWords();
}

std::string Who(const std::vector<Culprit>& culprits) {
  std::vector<std::string> details = {DeviceAndProcess(culprits), HostsAndPids(culprits)};
  details.erase(std::remove(details.begin(), details.end(), ""), details.end());
  const bool none_known =
      std::all_of(culprits.begin(), culprits.end(), [](const Culprit& c) { return c.process < 0; });
  if (none_known && !culprits.empty()) {
    return absl::StrCat(CulpritsInWords(culprits), " of the communicator (unknown process)");
  }
  const bool is_of_communicator = !culprits.empty() && culprits.front().process_rank >= 0;
  return absl::StrCat(CulpritsInWords(culprits), is_of_communicator ? " of the communicator" : "",
                      details.empty() ? "" : absl::StrCat(" (", absl::StrJoin(details, "; "), ")"));
}

std::string Where(const Verdict& v) {
  return CommunicatorInWords(v.communicator, v.communicator_name, v.communicator_kind);
}

std::string CallNumber(const Verdict& v) {
  const std::string name = v.call.op == Op::kNone ? "call" : OpInWords(v.call.op);
  return absl::StrCat(name, " #", v.position, GraphInWords(v.graph));
}

std::string WaitTail(const Verdict& v) {
  const size_t n = v.waiting_ranks.size();
  if (n == 0) return "";
  if (v.is_at_least && v.waited_ns < kLeastToldNs) {
    return absl::StrCat("; ", CountInWords(n, "rank waits", "ranks wait"));
  }
  return absl::StrCat("; ", CountInWords(n, "rank has waited ", "ranks have waited "),
                      v.is_at_least ? "at least " : "", DurationInWords(v.waited_ns),
                      v.step < 0 ? "" : " in ", v.step < 0 ? "" : StepInWords(v.step, v.phase));
}

const char* CulpritForm(const Verdict& v, const char* one, const char* many) {
  return PluralForm(CountCulprits(v.culprits), one, many);
}

bool IsCreation(const Verdict& v) { return OpKind(v.call.op) == CallKind::kCreate; }

std::string EndInWords(const CallArgs& call, const std::string& communicator) {
  const std::string peer =
      call.peer == segment::kAnySource ? "any rank" : absl::StrCat("rank ", call.peer);
  return absl::StrCat(OpInWords(call.op), IsSendSide(call.op) ? " to " : " from ", peer, " of ",
                      communicator);
}

// A process that cannot run stands nowhere.
std::string Subject(const Verdict& v) {
  const std::string stop = StopOfAll(v.culprits);
  if (stop.empty()) return BeginWithPlaces(v, Who(v.culprits));
  return absl::StrCat(Who(v.culprits), CulpritForm(v, " is ", " are "), stop, " and");
}

}  // namespace rollcall

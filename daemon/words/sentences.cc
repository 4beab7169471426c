// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/sentences.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/cut_text.h"
#include "daemon/words/alignment.h"
#include "daemon/words/fit_sentence.h"
#include "daemon/words/key_sentences.h"
#include "daemon/words/mismatch_sentences.h"
#include "daemon/words/network_words.h"
#include "daemon/words/rank_ranges.h"
#include "daemon/words/sentence_parts.h"
#include "daemon/words/standstill_sentences.h"
#include "daemon/words/start_sentences.h"
#include "daemon/words/stops.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kNamedEdges = 3;  // of a deadlock, in its sentence
constexpr size_t kNamedRivals = 4;
constexpr size_t kNamedTurns = 3;  // of threads
constexpr size_t kLongestError = 160;

bool DidEnter(const Verdict& v) {
  return !v.culprits.empty() && v.culprits.front().entered > v.position;
}

// "after 24 calls", "after 23-24 calls".
std::string AfterCalls(const std::vector<Culprit>& culprits) {
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  for (const Culprit& culprit : culprits) {
    least = std::min(least, culprit.entered);
    most = std::max(most, culprit.entered);
  }
  if (least != most) return absl::StrCat("after ", least, "-", most, " calls");
  return absl::StrCat("after ", CountInWords(most, "call", "calls"));
}

// " (killed by signal 9)"; "" if the culprits ended in different ways.
std::string Ending(const std::vector<Culprit>& culprits) {
  for (const Culprit& culprit : culprits) {
    if (culprit.ending != culprits.front().ending) return "";
  }
  std::string ending = culprits.front().ending;
  if (ending == kEndedUnknown) ending = "exit status unknown";
  return ending.empty() ? "" : absl::StrCat(" (", ending, ")");
}

std::string MissingRank(const Verdict& v) {
  if (v.late) {
    const std::string subject = Subject(v);
    const std::string late = absl::StrCat(subject, CulpritForm(v, " is", " are"), " late for ",
                                          CallNumber(v), " on ", Where(v));
    if (subject != Who(v.culprits) || v.outside.rank >= 0) return absl::StrCat(late, WaitTail(v));
    return absl::StrCat(late, " and ", CulpritForm(v, "runs", "run"), " other code", WaitTail(v));
  }
  return absl::StrCat(Subject(v), CulpritForm(v, " has", " have"), " not called ", CallNumber(v),
                      " on ", Where(v), WaitTail(v));
}

// Returns the exception that ended all culprits, or "" if they have none or differ.
std::string Error(const std::vector<Culprit>& culprits) {
  for (const Culprit& culprit : culprits) {
    if (culprit.error != culprits.front().error) return "";
  }
  return culprits.empty() ? "" : CutText(culprits.front().error, kLongestError, "...");
}

std::string RankFailed(const Verdict& v, const std::string& error) {
  const std::string failed = absl::StrCat(Who(v.culprits), " failed ");
  if (IsCreation(v)) {
    return absl::StrCat(failed, "with \"", error, "\" and never joined ", Where(v), " (",
                        OpInWords(v.call.op), ")", WaitTail(v));
  }
  return absl::StrCat(failed, AfterCalls(v.culprits), " with \"", error, "\"",
                      DidEnter(v) ? " inside " : " and never called ", CallNumber(v), " on ",
                      Where(v), WaitTail(v));
}

// Their processes live, and wait for the others.
bool AreLeaving(const Verdict& v) {
  return !v.culprits.empty() &&
         std::all_of(v.culprits.begin(), v.culprits.end(),
                     [](const Culprit& c) { return c.ending == kFinalizing; });
}

std::string RankExited(const Verdict& v) {
  const std::string error = Error(v.culprits);
  if (!error.empty()) return RankFailed(v, error);
  if (!IsCreation(v) && AreLeaving(v)) {
    return absl::StrCat(Subject(v), CulpritForm(v, " is leaving (", " are leaving ("), kFinalizing,
                        ") and never called ", CallNumber(v), " on ", Where(v), WaitTail(v));
  }
  if (IsCreation(v)) {
    return absl::StrCat(Who(v.culprits), " left", Ending(v.culprits), " and never joined ",
                        Where(v), " (", OpInWords(v.call.op), ")", WaitTail(v));
  }
  return absl::StrCat(Who(v.culprits), " left ", AfterCalls(v.culprits), Ending(v.culprits),
                      DidEnter(v) ? " inside " : " and never called ", CallNumber(v), " on ",
                      Where(v), WaitTail(v));
}

std::string RankDied(const Verdict& v) {
  const bool known = std::none_of(v.culprits.begin(), v.culprits.end(),
                                  [](const Culprit& c) { return c.ending == kEndedUnknown; });
  const std::string died =
      absl::StrCat(Who(v.culprits), known ? " died" : " ended", Ending(v.culprits));
  if (IsCreation(v)) {
    return absl::StrCat(died, " before ", Where(v), " was complete (", OpInWords(v.call.op), ")",
                        WaitTail(v));
  }
  return absl::StrCat(died, DidEnter(v) ? " inside " : " before entering ", CallNumber(v), " on ",
                      Where(v), WaitTail(v));
}

// "; NCCL refused pid 4007 (ncclInvalidUsage)".
std::string RefusalInWords(const Verdict& v) {
  for (const Culprit& culprit : v.culprits) {
    if (!culprit.is_refused) continue;
    return absl::StrCat("; NCCL refused ",
                        v.is_one_rank && culprit.pid != 0 ? absl::StrCat("pid ", culprit.pid)
                                                          : CulpritsInWords({culprit}),
                        culprit.nccl_result == 0
                            ? ""
                            : absl::StrCat(" (", ResultInWords(culprit.nccl_result), ")"));
  }
  return "";
}

// "pids 4001, 4007 (node-0) both join communicator "dp" as rank 1 of 4, and no process as rank 3".
std::string OneRank(const Verdict& v) {
  std::vector<std::string> pids;
  std::set<std::string> hosts;
  for (const Culprit& culprit : v.culprits) {
    if (pids.size() < kNamedRivals) pids.push_back(absl::StrCat(culprit.pid));
    if (!culprit.host.empty()) hosts.insert(culprit.host);
  }
  return absl::StrCat("pids ", absl::StrJoin(pids, ", "), " (", HostsInWords(hosts), ")",
                      v.culprits.size() == 2 ? " both join as " : " all join as ", "rank ",
                      v.claimed_rank, " of ", v.communicator_size, " of ", Where(v),
                      v.unclaimed.empty() ? "" : absl::StrCat(", and no process as ", v.unclaimed),
                      RefusalInWords(v), WaitTail(v));
}

std::string InitIncomplete(const Verdict& v) {
  if (v.is_one_rank) return OneRank(v);
  if (v.start_fault != StartFault::kNone) return StartSentence(v);
  if (!v.mismatched_fields.empty()) {
    const uint64_t first = v.culprits.front().call.count;
    const bool same = std::all_of(v.culprits.begin(), v.culprits.end(),
                                  [first](const Culprit& c) { return c.call.count == first; });
    return absl::StrCat(Subject(v), CulpritForm(v, " creates ", " create "), Where(v), " with ",
                        same ? absl::StrCat(first, " ranks") : "other sizes",
                        ", and the others create it with ", v.communicator_size, " (",
                        OpInWords(v.call.op), ")", RefusalInWords(v), WaitTail(v));
  }
  return absl::StrCat(Subject(v), " never joined ", Where(v), " of ", v.communicator_size,
                      " ranks (", OpInWords(v.call.op), ")", RefusalInWords(v), WaitTail(v));
}

std::string Stalled(const Verdict& v) {
  if (IsNamedByNetwork(v)) return NetworkSentence(v);
  const bool elsewhere = AreCulpritsElsewhere(v);
  const std::string least = v.culprits.empty() || elsewhere || !v.beside.empty()
                                ? ""
                                : absl::StrCat("; least advanced: ", Who(v.culprits));
  if (IsCreation(v)) {
    return absl::StrCat("all ", v.communicator_size, " ranks of ", Where(v), " are inside ",
                        OpInWords(v.call.op), ", which does not finish", WaitTail(v));
  }
  if (OpKind(v.call.op) == CallKind::kP2p && elsewhere && v.communicator_kind == CommKind::kGloo) {
    return absl::StrCat(Subject(v), CulpritForm(v, " has", " have"), " issued the other end of ",
                        OpInWords(v.call.op), " on ", Where(v),
                        CulpritForm(v, " and does", " and do"),
                        " not wait for it, and the message does not arrive", WaitTail(v));
  }
  if (OpKind(v.call.op) == CallKind::kP2p) {
    return absl::StrCat("sends and receives on ", Where(v), " match but do not finish (",
                        OpInWords(v.call.op), ")", least, WaitTail(v));
  }
  if (!StopOfAll(v.culprits).empty()) {
    return absl::StrCat(Subject(v), CulpritForm(v, " keeps", " keep"), " the others waiting in ",
                        CallNumber(v), " on ", Where(v), WaitTail(v));
  }
  if (elsewhere && !ReturnsEarly(v.call.op) && IsOfMpi(v.call.op)) {
    return absl::StrCat(Subject(v), CulpritForm(v, " has", " have"), " returned from ",
                        CallNumber(v), " on ", Where(v), CulpritForm(v, " and makes", " and make"),
                        " no call of MPI, and the call does not finish on the other ranks",
                        WaitTail(v));
  }
  if (elsewhere) {
    return absl::StrCat(Subject(v), CulpritForm(v, " does", " do"), " not wait for ", CallNumber(v),
                        " on ", Where(v), ": all ranks have made the call, but it does not finish",
                        WaitTail(v));
  }
  const std::string beside = v.beside.empty()
                                 ? ""
                                 : absl::StrCat("; nor does ", v.beside,
                                                ", which nothing orders with it on the same GPUs");
  return absl::StrCat("all ", v.communicator_size, " ranks of ", Where(v), " have entered ",
                      CallNumber(v), ", which does not finish", beside, least, WaitTail(v));
}

std::string HostLost(const Verdict& v) {
  std::set<std::string> hosts;
  for (const Culprit& culprit : v.culprits) hosts.insert(culprit.host);
  const bool all_named = hosts.size() <= kMostHosts;
  return absl::StrCat(
      all_named ? PluralForm(hosts.size(), "host ", "hosts ") : "", HostsInWords(hosts),
      all_named ? "" : ",", PluralForm(hosts.size(), " is", " are"),
      " silent, and the other ranks wait for ", CulpritsInWords(v.culprits), " in ",
      IsCreation(v) ? OpInWords(v.call.op) : CallNumber(v), " on ", Where(v), WaitTail(v));
}

std::string Deadlock(const Verdict& v) {
  std::vector<std::string> edges;
  for (const WaitEdge& edge : v.chain) {
    if (edges.size() == kNamedEdges) break;
    edges.push_back(EdgeInWords(edge));
  }
  const size_t more = v.chain.size() - edges.size();
  return absl::StrCat(
      CulpritsInWords(v.culprits), " wait for each other: ", absl::StrJoin(edges, ", and "),
      more == 0 ? "" : absl::StrCat(", and ", CountInWords(more, "more wait", "more waits")),
      WaitTail(v));
}

// Two ranks of which one has left out a call, and nothing shows which.
std::string UnmatchedTie(const Verdict& v) {
  const bool tags_differ = !v.mismatched_fields.empty();
  return absl::StrCat(tags_differ ? "" : "one of ", CulpritsInWords(v.culprits),
                      tags_differ ? " use different tags: " : " has left out a call: ",
                      EdgeInWords(v.chain[0]), ", and ", EdgeInWords(v.chain[1]), WaitTail(v));
}

std::string BlockedBeforeStart(const Verdict& v) {
  return absl::StrCat("all ranks have entered ", CallNumber(v), " on ", Where(v),
                      CulpritForm(v, ", but the GPU of ", ", but the GPUs of "), Who(v.culprits),
                      CulpritForm(v, " has", " have"),
                      " not started the call: earlier work blocks ",
                      CulpritForm(v, "its stream", "their streams"), WaitTail(v));
}

std::string TeardownHang(const Verdict& v) {
  if (v.culprits.empty()) {
    return absl::StrCat("all expected ranks are inside ", OpInWords(v.call.op), " of ", Where(v),
                        ", which does not return", WaitTail(v));
  }
  const std::string ending = Ending(v.culprits);
  const bool finalizing = v.culprits.front().ending == kFinalizing;
  const char* left = finalizing ? CulpritForm(v, " is leaving", " are leaving") : " left";
  if (ending.empty()) {
    return absl::StrCat(Subject(v), CulpritForm(v, " has", " have"), " not called ",
                        OpInWords(v.call.op), " of ", Where(v), WaitTail(v));
  }
  return absl::StrCat(Who(v.culprits), left, ending, " and never called ", OpInWords(v.call.op),
                      " of ", Where(v), WaitTail(v));
}

// "ncclInvalidArgument (Broadcast root 11 of 4 ranks)"; "an error" if the ranks have different
// ones.
std::string ErrorOfNccl(const Verdict& v) {
  if (v.culprits.empty()) return "an error";
  const Culprit& first = v.culprits.front();
  for (const Culprit& culprit : v.culprits) {
    if (culprit.nccl_result != first.nccl_result) return "an error";
  }
  if (first.nccl_result == 0) return "an error";
  const std::string result = ResultInWords(first.nccl_result);
  const CallArgs& call = first.call;
  if (call.op == Op::kNone || OpKind(call.op) == CallKind::kCreate) return result;
  if (call.peer == kNoPeer || (call.peer >= 0 && call.peer < v.communicator_size)) {
    return absl::StrCat(result, " (", CallInWords(call), ")");
  }
  const char* end = OpKind(call.op) == CallKind::kP2p ? " peer " : " root ";
  return absl::StrCat(result, " (", OpInWords(call.op), end, call.peer, " of ", v.communicator_size,
                      " ranks)");
}

std::string NcclError(const Verdict& v) {
  if (v.communicator_kind == CommKind::kGloo) {
    return absl::StrCat("a call threw an exception on ", Who(v.culprits), " in or before ",
                        CallNumber(v), " on ", Where(v), WaitTail(v));
  }
  return absl::StrCat("NCCL reported ", ErrorOfNccl(v), " on ", Who(v.culprits), " in or before ",
                      CallNumber(v), " on ", Where(v), WaitTail(v));
}

// False if only their arguments tell the calls of the threads apart.
bool DoOperationsTell(const Verdict& v) {
  const CallArgs& first = v.culprits.front().call;
  return std::all_of(v.culprits.begin(), v.culprits.end(), [&](const Culprit& culprit) {
    return culprit.call.op != first.op || SameCall(culprit.call, first);
  });
}

// The line at which the first culprit with an exception has failed: "rank 1 failed at train.py:33".
std::string FailureLine(const Verdict& v) {
  for (const Culprit& culprit : v.culprits) {
    const size_t at = culprit.error.rfind(" at ");
    const size_t colon = culprit.error.rfind(':');
    if (at == std::string::npos || colon == std::string::npos || colon < at) continue;
    return absl::StrCat(", and rank ", culprit.rank, " failed", culprit.error.substr(at));
  }
  return "";
}

// "ranks 0-2 made AllReduce, rank 3 AllGather".
std::string TurnsInWords(const Verdict& v) {
  const bool operations_tell = v.culprits.empty() || DoOperationsTell(v);
  std::vector<std::pair<std::string, std::vector<int32_t>>> turns;
  for (const Culprit& culprit : v.culprits) {
    const std::string call =
        operations_tell ? OpInWords(culprit.call.op) : CallInWords(culprit.call);
    if (turns.empty() || turns.back().first != call) turns.push_back({call, {}});
    turns.back().second.push_back(culprit.rank);
  }
  std::vector<std::string> parts;
  for (const auto& [call, ranks] : turns) {
    if (parts.size() == kNamedTurns) break;
    parts.push_back(absl::StrCat(RanksInWords(ranks), parts.empty() ? " made " : " ", call));
  }
  return absl::StrJoin(parts, ", ");
}

std::string ConcurrentUse(const Verdict& v) {
  if (v.unordered_threads) {
    return absl::StrCat("two threads make calls on ", Where(v), ", and nothing orders them: at #",
                        v.position, " ", TurnsInWords(v),
                        v.thread_places.empty() ? FailureLine(v) : "", WaitTail(v));
  }
  return absl::StrCat("two threads of ", Who(v.culprits), " were inside calls on ", Where(v),
                      " at the same time", WaitTail(v));
}

std::string Straggler(const Verdict& v) {
  return absl::StrCat(Who(v.culprits), " is the last to enter nearly every call on ", Where(v),
                      ", typically by ", MillisecondsInWords(v.late_ns), "; nothing hangs");
}

// "rank 0 (node-0, pid 4000) is in `main` (server.py:9), waiting in BaseServer.serve_forever, and
// waits for requests, and the others wait for Broadcast #4 on ...".
std::string IdleServer(const Verdict& v) {
  return absl::StrCat(Subject(v), CulpritForm(v, " waits", " wait"),
                      " for requests, and the others wait for ", CallNumber(v), " on ", Where(v),
                      ": if this server is idle, the job does not hang", WaitTail(v));
}

std::string SideWait(const Verdict& v) {
  return absl::StrCat(
      RanksInWords(v.waiting_ranks), PluralForm(v.waiting_ranks.size(), " waits in ", " wait in "),
      OpInWords(v.call.op), " of ", Where(v),
      " in a thread beside its main one: if that thread serves requests, the job does not hang",
      WaitTail(v));
}

std::string Sentence(const Verdict& verdict) {
  if (verdict.communicator_kind == CommKind::kStore && verdict.cause != Cause::kDeadlock) {
    return KeySentence(verdict);
  }
  if (verdict.waits_beside) return SideWait(verdict);
  if (verdict.is_idle && verdict.start_fault == StartFault::kNone) return IdleServer(verdict);
  switch (verdict.cause) {
    case Cause::kMissingRank:
      return MissingRank(verdict);
    case Cause::kRankExited:
      return RankExited(verdict);
    case Cause::kRankDied:
      return RankDied(verdict);
    case Cause::kInitIncomplete:
      return InitIncomplete(verdict);
    case Cause::kStalledInFlight:
      return Stalled(verdict);
    case Cause::kOperationMismatch:
    case Cause::kArgumentMismatch:
      return MismatchSentence(verdict);
    case Cause::kHostLost:
      return HostLost(verdict);
    case Cause::kUnmatchedP2p:
      return !verdict.is_consequence && verdict.chain.size() == 2 && verdict.culprits.size() == 2
                 ? UnmatchedTie(verdict)
                 : UnmatchedP2pSentence(verdict);
    case Cause::kDeadlock:
      return Deadlock(verdict);
    case Cause::kStandstill:
      return StandstillSentence(verdict);
    case Cause::kBlockedBeforeStart:
      return BlockedBeforeStart(verdict);
    case Cause::kTeardownHang:
      return TeardownHang(verdict);
    case Cause::kNcclError:
      return NcclError(verdict);
    case Cause::kConcurrentUse:
      return ConcurrentUse(verdict);
    case Cause::kStraggler:
      return Straggler(verdict);
  }
  return CauseName(verdict.cause);
}

}  // namespace

// Names of ranks, hosts, functions and communicators have limits, but a sentence may have many of
// them. How long ranks have waited always stays.
std::string WriteSummary(const Verdict& verdict) {
  std::string text = Sentence(verdict);
  if (text.size() <= kLongestSentence) return text;
  const std::string tail = WaitTail(verdict);
  if (absl::EndsWith(text, tail)) text.resize(text.size() - tail.size());
  return absl::StrCat(FitSentence(text, kLongestSentence - tail.size()), tail);
}

std::string EdgeInWords(const WaitEdge& edge) {
  if (edge.communicator_kind == CommKind::kStore) return KeyEdgeInWords(edge);
  const bool p2p = OpKind(edge.call.op) == CallKind::kP2p;
  const std::string communicator =
      CommunicatorInWords(edge.communicator, edge.communicator_name, edge.communicator_kind);
  const std::string call =
      p2p ? EndInWords(edge.call, communicator)
          : absl::StrCat(edge.call.op == Op::kNone ? "call" : OpInWords(edge.call.op), " #",
                         edge.position, " on ", communicator);
  return absl::StrCat(RanksInWords(edge.from),
                      PluralForm(edge.from.size(), " waits in ", " wait in "), call, " for ",
                      RankRanges(edge.to).InWords());
}

}  // namespace rollcall

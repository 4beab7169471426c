// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/sentences.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/words/alignment.h"
#include "daemon/words/rank_ranges.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kNamedPids = 4;
constexpr size_t kNamedSides = 6;  // different calls of a mismatch
constexpr size_t kNamedEdges = 3;  // of a deadlock, in its sentence

std::string CulpritsInWords(const std::vector<Culprit>& culprits) {
  return RankRanges(CulpritRanges(culprits)).InWords();
}

// "node-17, pid 4121", "node-17, pids 4121, 4122", "3 hosts"; "" if no host is known.
std::string HostsAndPids(const std::vector<Culprit>& culprits) {
  std::set<std::string> hosts;
  std::vector<int32_t> pids;
  for (const Culprit& culprit : culprits) {
    if (!culprit.host.empty()) hosts.insert(culprit.host);
    if (culprit.pid != 0) pids.push_back(culprit.pid);
  }
  if (hosts.empty()) return "";
  if (hosts.size() > 1) return absl::StrCat(hosts.size(), " hosts");
  if (pids.empty() || pids.size() > kNamedPids) return *hosts.begin();
  return absl::StrCat(*hosts.begin(), ", ", PluralForm(pids.size(), "pid ", "pids "),
                      absl::StrJoin(pids, ", "));
}

std::string Who(const std::vector<Culprit>& culprits) {
  const std::string hosts = HostsAndPids(culprits);
  const bool none_known =
      std::all_of(culprits.begin(), culprits.end(), [](const Culprit& c) { return c.process < 0; });
  if (none_known && !culprits.empty()) {
    return absl::StrCat(CulpritsInWords(culprits),
                        " of the communicator (unknown process)");
  }
  return absl::StrCat(CulpritsInWords(culprits),
                      hosts.empty() ? "" : absl::StrCat(" (", hosts, ")"));
}

std::string Where(const Verdict& v) {
  return CommunicatorInWords(v.communicator, v.communicator_name);
}

// " (CUDA graph 3, launch 812, call 3 of 5)"; "" if no graph made the call.
std::string GraphInWords(const GraphCall& call) {
  if (call.graph == 0) return "";
  return absl::StrCat(" (CUDA graph ", call.graph, ", launch ", call.launch, ", call ", call.call,
                      " of ", call.calls, ")");
}

std::string CallNumber(const Verdict& v) {
  const std::string name = v.call.op == Op::kNone ? "call" : OpInWords(v.call.op);
  return absl::StrCat(name, " #", v.position, GraphInWords(v.graph));
}

std::string WaitTail(const Verdict& v) {
  const size_t n = v.waiting_ranks.size();
  if (n == 0) return "";
  return absl::StrCat("; ", CountInWords(n, "rank has waited ", "ranks have waited "),
                      DurationInWords(v.waited_ns), v.step < 0 ? "" : " in ",
                      v.step < 0 ? "" : StepInWords(v.step, v.phase));
}

// The form of a word that fits the number of culprits.
const char* CulpritForm(const Verdict& v, const char* one, const char* many) {
  return PluralForm(CountCulprits(v.culprits), one, many);
}

bool IsCreation(const Verdict& v) { return OpKind(v.call.op) == CallKind::kCreate; }

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
    return absl::StrCat(Who(v.culprits), CulpritForm(v, " is", " are"), " late for ",
                        CallNumber(v), " on ", Where(v), " and ", CulpritForm(v, "runs", "run"),
                        " other code", WaitTail(v));
  }
  return absl::StrCat(Who(v.culprits), " never entered ", CallNumber(v), " on ", Where(v),
                      WaitTail(v));
}

// The exception that ended all culprits; "" if there is none, or if they differ.
std::string Error(const std::vector<Culprit>& culprits) {
  for (const Culprit& culprit : culprits) {
    if (culprit.error != culprits.front().error) return "";
  }
  return culprits.empty() ? "" : culprits.front().error;
}

std::string RankFailed(const Verdict& v, const std::string& error) {
  const std::string failed = absl::StrCat(Who(v.culprits), " failed ");
  if (IsCreation(v)) {
    return absl::StrCat(failed, "with \"", error, "\" and never joined ", Where(v), " (",
                        OpInWords(v.call.op), ")", WaitTail(v));
  }
  return absl::StrCat(failed, AfterCalls(v.culprits), " with \"", error, "\"",
                      DidEnter(v) ? " inside " : " and never entered ", CallNumber(v), " on ",
                      Where(v), WaitTail(v));
}

std::string RankExited(const Verdict& v) {
  const std::string error = Error(v.culprits);
  if (!error.empty()) return RankFailed(v, error);
  if (IsCreation(v)) {
    return absl::StrCat(Who(v.culprits), " left", Ending(v.culprits), " and never joined ",
                        Where(v), " (", OpInWords(v.call.op), ")", WaitTail(v));
  }
  return absl::StrCat(Who(v.culprits), " left ", AfterCalls(v.culprits), Ending(v.culprits),
                      DidEnter(v) ? " inside " : " and never entered ", CallNumber(v), " on ",
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
  return absl::StrCat(died, DidEnter(v) ? " inside " : " before entering ", CallNumber(v),
                      " on ", Where(v), WaitTail(v));
}

std::string InitIncomplete(const Verdict& v) {
  if (v.communicator == 0) {
    return absl::StrCat(Who(v.culprits), CulpritForm(v, " has", " have"),
                        " not reached the point where the others wait, and no rank has made an "
                        "NCCL call yet",
                        WaitTail(v));
  }
  return absl::StrCat(Who(v.culprits), " never joined ", Where(v), " of ", v.communicator_size,
                      " ranks (", OpInWords(v.call.op), ")", WaitTail(v));
}

// True if the culprit has made a call that returns early and does not wait for it.
bool CulpritIsElsewhere(const Verdict& v) {
  if (v.culprits.empty() || !ReturnsEarly(v.call.op)) return false;
  const std::vector<int32_t>& waiting = v.waiting_ranks;
  return std::find(waiting.begin(), waiting.end(), v.culprits.front().rank) == waiting.end();
}

std::string Stalled(const Verdict& v) {
  const bool elsewhere = CulpritIsElsewhere(v);
  const std::string least =
      v.culprits.empty() || elsewhere ? "" : absl::StrCat("; least advanced: ", Who(v.culprits));
  if (IsCreation(v)) {
    return absl::StrCat("all ", v.communicator_size, " ranks of ", Where(v), " are inside ",
                        OpInWords(v.call.op), ", which does not finish", WaitTail(v));
  }
  if (OpKind(v.call.op) == CallKind::kP2p) {
    return absl::StrCat("sends and receives on ", Where(v), " match but do not finish (",
                        OpInWords(v.call.op), ")", least, WaitTail(v));
  }
  if (elsewhere) {
    return absl::StrCat(Who(v.culprits), CulpritForm(v, " does", " do"), " not wait for ",
                        CallNumber(v), " on ", Where(v),
                        ": all ranks have made the call, but it does not finish", WaitTail(v));
  }
  return absl::StrCat("all ", v.communicator_size, " ranks of ", Where(v), " have entered ",
                      CallNumber(v), ", which does not finish", least, WaitTail(v));
}

// The culprits, grouped by their call: at most kNamedSides groups. `*others`: the culprits with
// other calls.
std::vector<std::vector<Culprit>> BySide(const std::vector<Culprit>& culprits,
                                         std::vector<int32_t>* others) {
  std::vector<std::vector<Culprit>> sides;
  for (const Culprit& culprit : culprits) {
    auto side = std::find_if(sides.begin(), sides.end(), [&](const std::vector<Culprit>& s) {
      return SameCall(s.front().call, culprit.call);
    });
    if (side == sides.end() && sides.size() == kNamedSides) {
      others->push_back(culprit.rank);
      continue;
    }
    if (side == sides.end()) side = sides.insert(sides.end(), std::vector<Culprit>());
    side->push_back(culprit);
  }
  return sides;
}

// The extra or skipped calls at the divergence.
std::vector<CallArgs> OnlyOnOneSide(const Verdict& v) {
  std::vector<CallArgs> calls;
  for (const AlignedCall& line : v.histories) {
    const bool extra = line.others.op == Op::kNone && v.divergence == DivergenceKind::kExtra;
    const bool skipped = line.culprits.op == Op::kNone && v.divergence == DivergenceKind::kSkipped;
    if (extra || skipped) {
      calls.push_back(extra ? line.culprits : line.others);
    } else if (!calls.empty()) {
      break;
    }
  }
  return calls;
}

// "2 calls, starting with Broadcast(...),".
std::string SeveralCalls(const std::vector<CallArgs>& calls, const char* noun) {
  return absl::StrCat(calls.size(), noun, ", starting with ", CallInWords(calls[0]), ",");
}

// The sentence on extra, skipped or swapped calls; "" if the kind of difference is unknown.
std::string Departure(const Verdict& v) {
  const std::string at = absl::StrCat(" at #", v.position, " on ", Where(v));
  const std::vector<CallArgs> calls = OnlyOnOneSide(v);
  if (v.divergence == DivergenceKind::kSwapped) {
    return absl::StrCat(Who(v.culprits),
                        " made the same calls as the others in a different order, starting", at,
                        ": ", CallInWords(v.culprits.front().call), " where the others called ",
                        CallInWords(v.call));
  }
  if (calls.empty()) return "";
  if (v.divergence == DivergenceKind::kExtra) {
    const std::string extra = calls.size() == 1
                                  ? absl::StrCat("an extra call, ", CallInWords(calls[0]), ",")
                                  : SeveralCalls(calls, " extra calls");
    return absl::StrCat(Who(v.culprits), " made ", extra, at, ", where the others called ",
                        CallInWords(v.call));
  }
  const std::string skipped =
      calls.size() == 1 ? CallInWords(calls[0]) : SeveralCalls(calls, " calls");
  return absl::StrCat(Who(v.culprits), " skipped ", skipped, at, " and called ",
                      CallInWords(v.culprits.front().call));
}

std::string Mismatch(const Verdict& v) {
  if (v.position_end != 0) {
    return absl::StrCat(Who(v.culprits), " made different calls from the others on ", Where(v),
                        ", starting between call #", v.position, " and call #", v.position_end,
                        WaitTail(v));
  }
  std::vector<std::string> parts;
  bool others = true;
  std::vector<int32_t> unnamed;
  const auto sides = BySide(v.culprits, &unnamed);
  const bool one_side = sides.size() == 1 && !SameCall(sides[0].front().call, v.call);
  const std::string departure = one_side ? Departure(v) : "";
  if (!departure.empty()) return absl::StrCat(departure, WaitTail(v));
  for (const std::vector<Culprit>& side : sides) {
    parts.push_back(absl::StrCat(Who(side), " called ", CallInWords(side.front().call)));
    if (SameCall(side.front().call, v.call)) others = false;  // a tie: no other rank is right
  }
  if (!unnamed.empty()) {
    parts.push_back(absl::StrCat(
        RanksInWords(unnamed),
        PluralForm(unnamed.size(), " made another call", " made other calls")));
  }
  const std::string rest =
      others ? absl::StrCat(" where the others called ", CallInWords(v.call)) : "";
  return absl::StrCat(absl::StrJoin(parts, others ? " and " : " where "), rest, ": call #",
                      v.position, " on ", Where(v), WaitTail(v));
}

std::string HostLost(const Verdict& v) {
  std::set<std::string> hosts;
  for (const Culprit& culprit : v.culprits) hosts.insert(culprit.host);
  const bool all_named = hosts.size() <= kMostHosts;
  return absl::StrCat(all_named ? PluralForm(hosts.size(), "host ", "hosts ") : "",
                      HostsInWords(hosts), all_named ? "" : ",",
                      PluralForm(hosts.size(), " is", " are"),
                      " silent, and the other ranks wait for ",
                      CulpritsInWords(v.culprits),
                      " in ", IsCreation(v) ? OpInWords(v.call.op) : CallNumber(v), " on ",
                      Where(v), WaitTail(v));
}

std::string UnmatchedP2p(const Verdict& v) {
  if (!v.mismatched_fields.empty() && v.culprits.size() == 2) {
    const Culprit& one = v.culprits[0];
    const Culprit& two = v.culprits[1];
    return absl::StrCat(Who({one}), " called ", CallInWords(one.call), ", but ", Who({two}),
                        " called ", CallInWords(two.call), " on ", Where(v), WaitTail(v));
  }
  if (v.divergence == DivergenceKind::kExtra) {
    return absl::StrCat(Who(v.culprits), " issued one ", EndInWords(v.call, Where(v)),
                        " too many: no ", OtherEndInWords(v.call.op), " matches it", WaitTail(v));
  }
  return absl::StrCat(Who(v.culprits), " never issued the ", OtherEndInWords(v.call.op),
                      " that matches ", EndInWords(v.call, Where(v)), WaitTail(v));
}

std::string Deadlock(const Verdict& v) {
  std::vector<std::string> edges;
  for (const WaitEdge& edge : v.chain) {
    if (edges.size() == kNamedEdges) break;
    edges.push_back(EdgeInWords(edge));
  }
  const size_t more = v.chain.size() - edges.size();
  return absl::StrCat(
      CulpritsInWords(v.culprits),
      " wait for each other: ", absl::StrJoin(edges, ", and "),
      more == 0 ? "" : absl::StrCat(", and ", CountInWords(more, "more wait", "more waits")),
      WaitTail(v));
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
    return absl::StrCat("all expected ranks are inside ", OpInWords(v.call.op), " of ",
                        Where(v), ", which does not return", WaitTail(v));
  }
  const std::string ending = Ending(v.culprits);
  const bool finalizing = v.culprits.front().ending == kFinalizing;
  const char* left = finalizing ? CulpritForm(v, " is leaving", " are leaving") : " left";
  return absl::StrCat(Who(v.culprits), ending.empty() ? "" : absl::StrCat(left, ending, " and"),
                      " never entered ", OpInWords(v.call.op), " of ", Where(v), WaitTail(v));
}

std::string NcclError(const Verdict& v) {
  return absl::StrCat("NCCL reported an error on ", Who(v.culprits), " in or before ",
                      CallNumber(v), " on ", Where(v), WaitTail(v));
}

std::string ConcurrentUse(const Verdict& v) {
  return absl::StrCat("two threads of ", Who(v.culprits), " were inside calls on ", Where(v),
                      " at the same time", WaitTail(v));
}

std::string Straggler(const Verdict& v) {
  return absl::StrCat(Who(v.culprits), " is the last to enter nearly every call on ", Where(v),
                      ", typically by ", MillisecondsInWords(v.late_ns), "; nothing hangs");
}

}  // namespace

std::string EndInWords(const CallArgs& call, const std::string& communicator) {
  return absl::StrCat(OpInWords(call.op), IsSendSide(call.op) ? " to rank " : " from rank ",
                      call.peer, " of ", communicator);
}

std::string WriteSummary(const Verdict& verdict) {
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
      return Mismatch(verdict);
    case Cause::kHostLost:
      return HostLost(verdict);
    case Cause::kUnmatchedP2p:
      return UnmatchedP2p(verdict);
    case Cause::kDeadlock:
      return Deadlock(verdict);
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

std::string EdgeInWords(const WaitEdge& edge) {
  const bool p2p = OpKind(edge.call.op) == CallKind::kP2p;
  const std::string communicator = CommunicatorInWords(edge.communicator, edge.communicator_name);
  const std::string call =
      p2p ? EndInWords(edge.call, communicator)
          : absl::StrCat(edge.call.op == Op::kNone ? "call" : OpInWords(edge.call.op), " #",
                         edge.position, " on ", communicator);
  return absl::StrCat(RanksInWords(edge.from),
                      PluralForm(edge.from.size(), " waits in ", " wait in "), call, " for ",
                      RankRanges(edge.to).InWords());
}

std::string DivergenceInWords(const Alignment& alignment) {
  const auto line =
      std::find_if(alignment.lines.begin(), alignment.lines.end(),
                   [](const AlignedCall& l) { return !SameCall(l.others, l.culprits); });
  if (line == alignment.lines.end()) return "";
  const std::string more =
      alignment.length > 1 ? absl::StrCat(" (and ", alignment.length - 1, " more)") : "";
  switch (alignment.kind) {
    case DivergenceKind::kExtra:
      return absl::StrCat("without the extra ", CallInWords(line->culprits), more, " at #",
                          line->culprit_position, " the histories agree again");
    case DivergenceKind::kSkipped:
      return absl::StrCat("with the skipped ", CallInWords(line->others), more, " at #",
                          line->position, " the histories agree again");
    case DivergenceKind::kSwapped:
      return "the ranks made the same calls in a different order";
    case DivergenceKind::kReplaced:
    case DivergenceKind::kNone:
      return "";
  }
  return "";
}

}  // namespace rollcall

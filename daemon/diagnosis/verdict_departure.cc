// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/verdict_departure.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/diagnosis/advice_patterns.h"
#include "daemon/diagnosis/members_by_process.h"
#include "daemon/diagnosis/stack_comparison.h"
#include "daemon/diagnosis/step_departure.h"
#include "daemon/model/first_calls.h"
#include "daemon/model/habit.h"
#include "daemon/model/progress.h"
#include "daemon/rules/past_calls.h"
#include "daemon/rules/tie.h"
#include "daemon/words/alignment.h"

namespace rollcall {
namespace {

using Habit = CulpritsCall::Habit;
using Kind = StackDeparture::Kind;

constexpr size_t kMostPastCalls = 1024;  // of its past
constexpr size_t kLeastPastCalls = 4;    // before the call; fewer are the set-up
constexpr size_t kWithoutAPeriod = 16;

// PyTorch creates a communicator with its first call: the absent are in a call of another one.
bool IsFirstUse(const Verdict& v) {
  return Is(v, Cause::kInitIncomplete) && WaitsForRanks(v) && PlacesAreKnown(v);
}

// Of two ends with different tags neither is left out, nor too many.
bool MayDepart(const Verdict& v) {
  if (Is(v, Cause::kUnmatchedP2p) && HasField(v, "tag")) return false;
  return IsContradiction(v.cause) || Is(v, Cause::kMissingRank) || Is(v, Cause::kUnmatchedP2p) ||
         Is(v, Cause::kTeardownHang) || IsFirstUse(v);
}

// The number of calls that count as "each step" before the last one.
size_t WindowOf(const std::vector<const CallRecord*>& calls, bool* has_period) {
  std::vector<CallToken> tokens;
  for (size_t i = 0; i + 1 < calls.size(); ++i) tokens.push_back(SignatureOf(calls[i]->args));
  const size_t period = JudgeCall(tokens, tokens.size() - 1).habit.period;
  *has_period = period != 0;
  return period != 0 ? period : std::min(kWithoutAPeriod, tokens.size());
}

bool HasPeriod(const std::vector<const CallRecord*>& calls) {
  bool has_period = false;
  if (calls.size() > kLeastPastCalls) WindowOf(calls, &has_period);
  return has_period;
}

// Whether the last call belongs to the step that the rank repeats, and comes from the same line.
Habit JudgeLast(const std::vector<const CallRecord*>& calls) {
  if (calls.size() <= kLeastPastCalls) return Habit::kUnknown;
  const CallRecord& last = *calls.back();
  bool has_period = false;
  const size_t window = WindowOf(calls, &has_period);
  size_t equal = 0, from_line = 0, alike = 0;
  for (size_t i = calls.size() - 1 - window; i + 1 < calls.size(); ++i) {
    const CallRecord& call = *calls[i];
    const bool sites_are_known = call.site != 0 && last.site != 0;
    if (sites_are_known && call.site != last.site) continue;
    const bool is_equal = SignatureOf(call.args) == SignatureOf(last.args);
    if (is_equal) ++equal;
    if (is_equal && sites_are_known) ++from_line;
    if (sites_are_known && call.args.op == last.args.op) ++alike;
  }
  const size_t enough = has_period ? 1 : 2;
  if (from_line >= enough) return Habit::kUsual;
  if (equal >= enough) return Habit::kAlike;
  return equal + alike == 0 ? Habit::kNew : Habit::kUnknown;
}

uint64_t PositionOfCulprit(const Verdict& verdict) {
  for (const AlignedCall& line : verdict.histories) {
    if (line.position == verdict.position && line.culprits.op != Op::kNone) {
      return line.culprit_position;
    }
  }
  return verdict.position;
}

// The culprit's collectives up to the one in which it waits, on any communicator; empty if it waits
// in none, or in those of several ranks.
std::vector<const CallRecord*> FindCallsElsewhere(const JobState& job, int32_t process) {
  const Process* known = FindProcess(job, process);
  if (known == nullptr || known->holds_several || known->blocked.empty()) return {};
  const auto comm = job.communicators.find(known->blocked.front().communicator);
  if (comm == job.communicators.end()) return {};
  const Member* member = MembersByProcess(comm->second).Find(process);
  if (member == nullptr || member->entered == 0) return {};
  return CallsUpTo(*member, member->entered - 1);
}

// The culprit's collectives up to its odd call; empty if unknown.
std::vector<const CallRecord*> FindCalls(const JobState& job, const Verdict& verdict,
                                         int32_t process) {
  const auto comm = job.communicators.find(verdict.communicator);
  if (!IsContradiction(verdict.cause) || comm == job.communicators.end()) return {};
  const Member* member = MembersByProcess(comm->second).Find(process);
  if (member == nullptr) return {};
  const uint64_t position = PositionOfCulprit(verdict);
  std::vector<const CallRecord*> calls = CallsUpTo(*member, position);
  if (calls.empty() || calls.back()->position != position) return {};
  if (calls.size() > kMostPastCalls) calls.erase(calls.begin(), calls.end() - kMostPastCalls);
  return calls;
}

bool IsOnAnotherThanUsual(const JobState& job, const Verdict& verdict) {
  const auto comm = job.communicators.find(verdict.communicator);
  if (!IsContradiction(verdict.cause) || comm == job.communicators.end()) return false;
  if (verdict.culprits.empty()) return false;
  const Member* member = MembersByProcess(comm->second).Find(verdict.culprits.front().process);
  return member != nullptr &&
         IsUsualElsewhere(job, comm->second, *member, PositionOfCulprit(verdict));
}

bool RepeatsLast(const std::vector<const CallRecord*>& calls) {
  if (calls.size() < 2) return false;
  const CallRecord& last = *calls.back();
  const CallRecord& before = *calls[calls.size() - 2];
  return SignatureOf(last.args) == SignatureOf(before.args) && last.site == before.site;
}

std::string SiteOf(const JobState& job, const Member& member, const CallRecord& record) {
  const Process* process = FindProcess(job, member.process);
  if (process == nullptr || record.site == 0 || record.site > process->sites.size()) return "";
  return process->sites[record.site - 1];
}

const Member* FindWaiter(const MembersByProcess& members, const Verdict& verdict) {
  for (const int32_t process : verdict.waiting_processes) {
    const Member* member = members.Find(process);
    if (member != nullptr) return member;
  }
  return nullptr;
}

std::vector<std::string> SitesOf(const JobState& job, const Member& member, uint64_t position) {
  std::vector<std::string> sites;
  for (const CallRecord* call : CallsUpTo(member, position)) {
    if (call->position < position) sites.push_back(SiteOf(job, member, *call));
  }
  return sites;
}

bool IsAmong(const std::string& site, const std::vector<std::string>& sites, size_t count) {
  const auto end = sites.begin() + static_cast<std::ptrdiff_t>(count);
  return std::find(sites.begin(), end, site) != end;
}

// A line from which the culprit made calls in its last step only, and the waiting rank made none;
// empty if unknown. Those calls met equal ones of the others, so only a later call shows that there
// was one too many.
std::string FindOwnLine(const JobState& job, const Verdict& verdict, int32_t process) {
  const auto comm = job.communicators.find(verdict.communicator);
  if (!IsContradiction(verdict.cause) || comm == job.communicators.end()) return "";
  const MembersByProcess members(comm->second);
  const Member* culprit = members.Find(process);
  const Member* waiter = FindWaiter(members, verdict);
  if (culprit == nullptr || waiter == nullptr) return "";
  const uint64_t position = PositionOfCulprit(verdict);
  const std::vector<const CallRecord*> calls = CallsUpTo(*culprit, position);
  bool has_period = false;
  const size_t window = calls.size() <= kLeastPastCalls ? 0 : WindowOf(calls, &has_period);
  const std::vector<std::string> others = SitesOf(job, *waiter, verdict.position);
  const std::vector<std::string> own = SitesOf(job, *culprit, position);
  if (window == 0 || own.size() < window + kLeastPastCalls) return "";
  const size_t earlier = own.size() - window;
  for (size_t i = earlier; i < own.size(); ++i) {
    const CallRecord* met = FindCollective(*waiter, calls[i]->position);
    if (met == nullptr || SiteOf(job, *waiter, *met).empty() || own[i].empty()) continue;
    if (!IsAmong(own[i], own, earlier) && !IsAmong(own[i], others, others.size())) return own[i];
  }
  return "";
}

// What it did before explains where the culprit is now.
void PreferOwnLine(const std::string& site, int32_t rank, Verdict* verdict) {
  const Kind kind = verdict->departure.kind;
  if (site.empty() || (kind != Kind::kSkipped && kind != Kind::kUnknown)) return;
  verdict->departure = StackDeparture();
  verdict->departure.kind = Kind::kExtra;
  verdict->evidence.push_back(absl::StrCat("rank ", rank, " has made a call at ", site,
                                           ", where a rank that waits has made none"));
}

// Within one pass of a larger loop, a loop over messages has other passes on each rank, or only
// waits for them.
bool LeftALoopOfMessages(const Verdict& verdict) {
  const StackDeparture& departure = verdict.departure;
  return Is(verdict, Cause::kUnmatchedP2p) && departure.kind == Kind::kLeftLoop &&
         departure.shares_loop && departure.loop_first == 0;
}

// A rank that is one pass ahead has left out the rest of a pass, or made the begin of one more: of
// rank 0 alone the latter is as likely (`if rank == 0: validate()`), and of any rank where the
// source lets no pass go without the others' line; unless the line of its call is known, or that of
// a `continue` before the others' call.
bool MayBeOnePassMore(const Verdict& verdict, Habit habit) {
  const StackDeparture& departure = verdict.departure;
  if (departure.kind != Kind::kSkipped || departure.leaves_branch) return false;
  if (departure.in_own_loop) return true;
  if (habit != Habit::kAlike) return false;
  if (departure.skips_at != 0 || departure.culprit_line >= departure.waiter_line) return false;
  const bool is_rank0 = verdict.culprits.size() == 1 && verdict.culprits[0].rank == 0;
  return is_rank0 || departure.in_each_pass;
}

// PyTorch's own functions make the call, and nothing of a library around them.
bool WaitsDirectly(const StackPlace& place) {
  return absl::StartsWith(place.inside, "distributed_c10d.");
}

std::vector<CallToken> TokensOfCalls(const std::vector<const CallRecord*>& calls) {
  std::vector<CallToken> tokens;
  for (const CallRecord* call : calls) tokens.push_back(SignatureOf(call->args));
  return tokens;
}

// The calls between both lines decide: the shorter way is the likelier one. Of equal ways, the one
// that the source permits.
void JudgeOnePassMore(const std::vector<const CallRecord*>& calls, int32_t rank, Verdict* verdict) {
  StackDeparture& departure = verdict->departure;
  const StepDeparture step = DepartFromStep(TokensOfCalls(calls), SignatureOf(verdict->call), true);
  if (step.kind == DivergenceKind::kSkipped) return;
  const bool allows_more = departure.in_each_pass || departure.in_own_loop;
  if (step.kind != DivergenceKind::kExtra && !allows_more) {
    departure = StackDeparture();
    return;
  }
  departure.kind = Kind::kExtra;
  departure.condition_line = 0;
  if (departure.in_own_loop) return;
  departure.is_again = true;
  verdict->evidence.push_back(absl::StrCat(
      "rank ", rank, " is at line ", departure.culprit_line, " of `", departure.function,
      "` again, and a rank that waits still at line ", departure.waiter_line,
      ": it has made the calls before that line once more, or left out the rest of a pass"));
}

// It goes on with the calls of a loop, and the others make one behind it that it has never made: a
// further pass is likelier than a call that was left out.
bool StaysInItsLoop(const std::vector<const CallRecord*>& calls, const Verdict& verdict) {
  const StackDeparture& departure = verdict.departure;
  if (departure.kind != Kind::kSkipped || !departure.in_loop_below || calls.empty()) return false;
  const std::vector<CallToken> tokens = TokensOfCalls(calls);
  return std::find(tokens.begin(), tokens.end(), SignatureOf(verdict.call)) == tokens.end();
}

// The usual call of the culprit meets one of a size that it has never had, from the same line: it
// is one call, and no call is missing.
bool HasAnotherSize(const std::vector<CallToken>& calls, const Verdict& verdict) {
  const CallToken others = SignatureOf(verdict.call);
  return Is(verdict, Cause::kArgumentMismatch) && IsOneLine(verdict) &&
         std::find(calls.begin(), calls.end(), others) == calls.end();
}

// What the stacks show of the calls. The rules compare whole histories where a culprit goes on
// after its odd call; where it is blocked in that call, the histories differ only in the last one.
void SetDivergence(const std::vector<const CallRecord*>& calls, Habit habit, Verdict* verdict) {
  if (!IsContradiction(verdict->cause)) return;
  DivergenceKind& divergence = verdict->divergence;
  const Kind kind = verdict->departure.kind;
  if (kind == Kind::kStays) {
    verdict->odd_call_is_usual =
        HasPeriod(calls) && (habit == Habit::kUsual || habit == Habit::kAlike);
  }
  if ((kind == Kind::kLeftLoop || kind == Kind::kStays) && divergence == DivergenceKind::kExtra) {
    divergence = DivergenceKind::kReplaced;
  }
  if (divergence != DivergenceKind::kReplaced) return;
  if (kind == Kind::kSkipped) divergence = DivergenceKind::kSkipped;
  if (kind == Kind::kExtra) divergence = DivergenceKind::kExtra;
  if (kind != Kind::kUnknown) return;
  const std::vector<CallToken> tokens = TokensOfCalls(calls);
  const StepDeparture departure = DepartFromStep(tokens, SignatureOf(verdict->call));
  if (!HasAnotherSize(tokens, *verdict)) divergence = departure.kind;
  verdict->odd_call_is_usual = departure.is_usual;
}

// The first culprit from `from` on whose frames are known, of another call than `not_of`; the
// number of places if there is none.
size_t FindPlaced(const Verdict& verdict, size_t from, const CallArgs* not_of) {
  size_t i = from;
  while (i < verdict.places.size() &&
         (verdict.places[i].program.empty() ||
          (not_of != nullptr && SameCall(verdict.culprits[i].call, *not_of)))) {
    ++i;
  }
  return i;
}

bool Waits(const Verdict& verdict, int32_t process) {
  const std::vector<int32_t>& waiting = verdict.waiting_processes;
  return std::find(waiting.begin(), waiting.end(), process) != waiting.end();
}

bool IsNew(const JobState& job, const Verdict& verdict, size_t culprit) {
  return JudgeLast(FindCalls(job, verdict, verdict.culprits[culprit].process)) == Habit::kNew;
}

// The culprit to compare, as an index; the number of places if there is none. In a tie both sides
// are culprits and wait for each other: the side departs whose call is new to it, and the other one
// waits.
size_t FindDeparting(const JobState& job, Verdict* verdict) {
  const size_t first = FindPlaced(*verdict, 0, nullptr);
  if (first == verdict->places.size() || !IsContradiction(verdict->cause)) return first;
  if (!Waits(*verdict, verdict->culprits[first].process)) return first;
  const size_t second = FindPlaced(*verdict, first + 1, &verdict->culprits[first].call);
  if (second == verdict->places.size()) return first;
  const bool is_second = !IsNew(job, *verdict, first) && IsNew(job, *verdict, second);
  verdict->waiting_place = verdict->places[is_second ? first : second];
  return is_second ? second : first;
}

// Where no stack is known, the calls alone show whether the odd one is of the culprit's usual step.
void JudgeWithoutStacks(const JobState& job, Verdict* verdict) {
  if (verdict->culprits.empty() || verdict->divergence != DivergenceKind::kReplaced) return;
  const std::vector<const CallRecord*> calls =
      FindCalls(job, *verdict, verdict->culprits.front().process);
  verdict->odd_call_is_usual =
      DepartFromStep(TokensOfCalls(calls), SignatureOf(verdict->call)).is_usual;
}

}  // namespace

void AddDeparture(const JobState& job, Verdict* verdict) {
  if (!MayDepart(*verdict)) return;
  verdict->is_usual_elsewhere = IsOnAnotherThanUsual(job, *verdict);
  const size_t departing = FindDeparting(job, verdict);
  if (departing == verdict->places.size() || verdict->waiting_place.program.empty()) {
    JudgeWithoutStacks(job, verdict);
    return;
  }
  const StackPlace* place = &verdict->places[departing];
  const Culprit& culprit = verdict->culprits[departing];
  const std::vector<const CallRecord*> calls = FindCalls(job, *verdict, culprit.process);
  // A rank that is absent may be in a call that it makes in each step.
  const std::vector<const CallRecord*> elsewhere =
      Is(*verdict, Cause::kUnmatchedP2p) ? FindCallsElsewhere(job, culprit.process) : calls;
  const CulpritsCall call = {JudgeLast(elsewhere), WaitsForRanks(*verdict), RepeatsLast(calls),
                             WaitsDirectly(verdict->waiting_place), WaitsDirectly(*place)};
  verdict->departure = CompareStacks(place->program, verdict->waiting_place.program, call);
  if (LeftALoopOfMessages(*verdict)) verdict->departure = StackDeparture();
  if (StaysInItsLoop(calls, *verdict)) verdict->departure.kind = Kind::kStays;
  if (MayBeOnePassMore(*verdict, call.habit)) JudgeOnePassMore(calls, culprit.rank, verdict);
  PreferOwnLine(FindOwnLine(job, *verdict, culprit.process), culprit.rank, verdict);
  verdict->departure.culprit = departing;
  SetDivergence(calls, call.habit, verdict);
}

}  // namespace rollcall

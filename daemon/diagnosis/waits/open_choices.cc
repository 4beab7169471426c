// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/waits/open_choices.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <vector>

namespace rollcall {
namespace {

class Choices {
 public:
  Choices(const StuckCalls& calls, const LiveRanks& live, int64_t settled_before_ns)
      : calls_(calls), live_(live), is_open_(calls.size()) {
    for (const StuckCall* call : calls) {
      for (const Waiter& waiter : call->waiters) {
        if (waiter.wait.since_ns <= settled_before_ns) ++settled_waits_[waiter.process];
      }
    }
    settled_before_ns_ = settled_before_ns;
    for (size_t i = 0; i < calls.size(); ++i) {
      for (const Absent& absent : calls[i]->absents) lacking_[absent.process].push_back(i);
    }
    for (const int32_t process : live.FindProcesses()) free_ += Waits(process) ? 0 : 1;
  }

  // Until nothing changes: an open call opens those that wait for its ranks. Looks again only at
  // these: a pipeline may have thousands of ranks.
  void Open() {
    std::vector<size_t> to_look(calls_.size());
    std::iota(to_look.rbegin(), to_look.rend(), 0);
    while (!to_look.empty()) {
      const size_t i = to_look.back();
      to_look.pop_back();
      if (is_open_[i] || !ShallOpen(*calls_[i])) continue;
      SetOpen(i);
      for (const Waiter& waiter : calls_[i]->waiters) {
        const auto lacking = lacking_.find(waiter.process);
        if (lacking == lacking_.end()) continue;
        to_look.insert(to_look.end(), lacking->second.begin(), lacking->second.end());
        lacking_.erase(lacking);
      }
    }
  }

  ClosedCalls Take() const {
    ClosedCalls closed;
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (is_open_[i]) continue;
      const StuckCall& call = *calls_[i];
      StuckCall less = call;
      KeepAbsents(&less);
      if (less.absents.size() == call.absents.size()) {
        closed.calls.push_back(&call);
      } else {
        closed.changed.push_back(std::move(less));
        closed.calls.push_back(&closed.changed.back());
      }
    }
    return closed;
  }

 private:
  bool IsIdle(const Absent& absent) const { return idle_.count(absent.process) != 0; }

  // Whether it waits in a call that is not open, and has for a while.
  bool Waits(int32_t process) const {
    const auto waits = settled_waits_.find(process);
    return waits != settled_waits_.end() && waits->second > 0;
  }

  // Where all others stand, a rank exchanges nothing that leads on: its threads beside the main one
  // may answer theirs.
  bool GoesOn(const StuckCall& call, const Absent& absent) const {
    if (!IsOfMessages(call) || !live_.GoesOn(absent.process, call.since_ns)) return false;
    return !Waits(absent.process) && (free_ > 1 || !live_.Listens(absent.process));
  }

  // Whether the rank may come to what the call lacks: it waits for work, or goes on with messages.
  bool MayCome(const StuckCall& call, const Absent& absent) const {
    return absent.gone == Gone::kNo && (IsIdle(absent) || GoesOn(call, absent));
  }

  // Whether the rank will send nothing, as long as all others hang.
  bool IsOut(const Absent& absent) const {
    if (absent.gone != Gone::kNo) return true;
    return absent.process >= 0 && !IsIdle(absent) && Waits(absent.process);
  }

  bool ShallOpen(const StuckCall& call) const {
    const auto& absents = call.absents;
    if (call.is_choice) {
      return !std::all_of(absents.begin(), absents.end(),
                          [this](const Absent& absent) { return IsOut(absent); });
    }
    return !absents.empty() &&
           std::all_of(absents.begin(), absents.end(),
                       [&](const Absent& absent) { return MayCome(call, absent); });
  }

  void SetOpen(size_t i) {
    is_open_[i] = true;
    for (const Waiter& waiter : calls_[i]->waiters) {
      idle_.insert(waiter.process);
      if (waiter.wait.since_ns <= settled_before_ns_) --settled_waits_[waiter.process];
    }
  }

  // Of a choice, those who have left: the others wait for these, too.
  void KeepAbsents(StuckCall* call) const {
    auto& absents = call->absents;
    const auto is_gone = [](const Absent& absent) { return absent.gone != Gone::kNo; };
    const bool any_gone = std::any_of(absents.begin(), absents.end(), is_gone);
    absents.erase(std::remove_if(absents.begin(), absents.end(),
                                 [&](const Absent& absent) {
                                   if (is_gone(absent)) return false;
                                   return MayCome(*call, absent) || (call->is_choice && any_gone);
                                 }),
                  absents.end());
  }

  const StuckCalls& calls_;
  const LiveRanks& live_;
  int64_t settled_before_ns_ = 0;
  std::vector<bool> is_open_;
  std::map<int32_t, int> settled_waits_;  // by process: its waits in calls that are not open
  std::map<int32_t, std::vector<size_t>> lacking_;  // by absent process: the calls that lack it
  std::set<int32_t> idle_;                          // processes whose waits are open
  size_t free_ = 0;  // processes that exchange messages and wait in no call
};

}  // namespace

ClosedCalls WithoutOpenChoices(const StuckCalls& calls, const LiveRanks& live, int64_t now_ns,
                               const Limits& limits) {
  const bool any = std::any_of(calls.begin(), calls.end(), [](const StuckCall* call) {
    return call->is_choice || IsOfMessages(*call);
  });
  if (!any) return {calls, {}};
  const int64_t settled_ns = std::min(limits.suspect_floor_ns, limits.suspect_after_ns / 2);
  Choices choices(calls, live, now_ns - settled_ns);
  choices.Open();
  return choices.Take();
}

}  // namespace rollcall

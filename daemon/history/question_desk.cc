// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/question_desk.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace rollcall {
namespace {

constexpr int64_t kKeptNs = 60'000'000'000;
constexpr int64_t kWantedNs = 10'000'000'000;  // who wants an answer asks again within this time
constexpr size_t kMostOpen = 16;
constexpr size_t kMostKnown = 64;  // with those that are answered
// Times what is left: of one caller, and of all callers of some tenants. Of those who see all
// tenants no one takes all.
constexpr size_t kShareOfCaller = 1, kShareOfTenants = 3;

absl::Status HasEnded() { return absl::UnavailableError("the history cannot be read now"); }

}  // namespace

QuestionDesk::Answer QuestionDesk::Ask(const v1::HistoryQuery& query, const HistoryCaller& caller,
                                       std::chrono::nanoseconds patience) {
  std::string key = query.SerializeAsString();
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const MutexLock lock(mutex_);
  if (has_ended_) return HasEnded();
  const int64_t now_ns = now_ns_();
  DropOld(now_ns);
  auto at = known_.find(key);
  if (at == known_.end()) {
    if (!HasRoomFor(caller)) {
      return absl::ResourceExhaustedError(
          "the history has too many pending queries; ask again later");
    }
    auto added = std::make_shared<Question>();
    added->query = query;
    added->caller = caller;
    at = known_.emplace(std::move(key), added).first;
    open_.push_back(std::move(added));
    wake_.NotifyOne();
  }
  const QuestionPtr question = at->second;
  question->asked_ns = now_ns;
  if (question->answer.has_value()) return Give(at);
  if (!question->is_put_off) {
    ++question->callers;
    while (!question->answer.has_value() && !has_ended_ && answered_.WaitUntil(mutex_, deadline)) {
    }
    --question->callers;
    if (question->answer.has_value()) return *question->answer;
    if (has_ended_) return HasEnded();
    question->is_put_off = true;
  }
  return absl::AbortedError("the history still works on this query; ask again for its answer");
}

bool QuestionDesk::HasRoomFor(const HistoryCaller& caller) const {
  const auto is_of_caller = [&](const Question& other) { return other.caller.who == caller.who; };
  const auto is_of_tenants = [&](const Question& other) {
    return other.caller.tenants == caller.tenants;
  };
  return HasRoomFor(is_of_caller, kShareOfCaller) && HasRoomFor(is_of_tenants, kShareOfTenants);
}

bool QuestionDesk::HasRoomFor(const std::function<bool(const Question&)>& is_own,
                              size_t share) const {
  const auto open = std::count_if(open_.begin(), open_.end(),
                                  [&](const QuestionPtr& one) { return is_own(*one); });
  const auto known = std::count_if(known_.begin(), known_.end(),
                                   [&](const auto& one) { return is_own(*one.second); });
  return static_cast<size_t>(open) < share * (kMostOpen - open_.size()) &&
         static_cast<size_t>(known) < share * (kMostKnown - known_.size());
}

void QuestionDesk::DropOld(int64_t now_ns) {
  for (auto at = known_.begin(); at != known_.end();) {
    const Question& question = *at->second;
    const bool is_old = question.answer.has_value() && now_ns - question.answered_ns >= kKeptNs;
    at = is_old ? known_.erase(at) : std::next(at);
  }
}

// Of an error, or an answer that lacks something, the next caller wants a better one.
QuestionDesk::Answer QuestionDesk::Give(Known::iterator at) {
  Answer answer = *at->second->answer;
  if (!answer.ok() || !answer->note().empty()) known_.erase(at);
  return answer;
}

// Only a caller with that answer asks again; for others the next query may have another answer.
void QuestionDesk::KeepIfWanted(const QuestionPtr& question) {
  question->answered_ns = now_ns_();
  if (!question->is_put_off) known_.erase(question->query.SerializeAsString());
}

void QuestionDesk::Run(const Work& work) {
  MutexLock lock(mutex_);
  while (true) {
    while (!has_ended_ && open_.empty()) wake_.Wait(mutex_);
    if (has_ended_) return;
    const QuestionPtr question = open_.front();
    open_.pop_front();
    if (question->callers == 0 && now_ns_() - question->asked_ns >= kWantedNs) {
      known_.erase(question->query.SerializeAsString());
      continue;
    }
    lock.Unlock();
    Answer answer = work(question->query);
    lock.Lock();
    question->answer = std::move(answer);
    KeepIfWanted(question);
    answered_.NotifyAll();
  }
}

void QuestionDesk::End() {
  const MutexLock lock(mutex_);
  has_ended_ = true;
  wake_.NotifyAll();
  answered_.NotifyAll();
}

}  // namespace rollcall

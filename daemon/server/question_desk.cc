// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/question_desk.h"

#include <utility>

#include "absl/status/status.h"

namespace rollcall {
namespace {

constexpr int64_t kKeptNs = 60'000'000'000;
constexpr size_t kMostKnown = 32;  // open, or answered while nobody waited

}  // namespace

QuestionDesk::Answer QuestionDesk::Ask(const v1::CountIncidentsRequest& request,
                                       std::chrono::nanoseconds patience) {
  std::string key = request.SerializeAsString();
  std::unique_lock<std::mutex> lock(mutex_);
  if (has_ended_) return absl::UnavailableError("the history cannot be read now");
  DropOld();
  auto at = known_.find(key);
  if (at == known_.end()) {
    if (known_.size() >= kMostKnown) {
      return absl::UnavailableError("the history has too many questions to answer; ask again later");
    }
    auto added = std::make_shared<Question>();
    added->request = request;
    at = known_.emplace(std::move(key), added).first;
    open_.push_back(std::move(added));
    wake_.notify_one();
  }
  const QuestionPtr question = at->second;
  ++question->callers;
  answered_.wait_for(lock, patience, [&] { return question->answer.has_value() || has_ended_; });
  --question->callers;
  if (question->answer.has_value()) return *question->answer;
  return absl::AbortedError("the history still works on this question; ask again for its answer");
}

// Requires the mutex.
void QuestionDesk::DropOld() {
  const int64_t now_ns = now_ns_();
  for (auto at = known_.begin(); at != known_.end();) {
    const Question& question = *at->second;
    const bool is_old = question.answer.has_value() && now_ns - question.answered_ns >= kKeptNs;
    at = is_old ? known_.erase(at) : std::next(at);
  }
}

// Requires the mutex. An answer that somebody has waited for is not kept: the next question may have
// another one.
void QuestionDesk::Answered(const QuestionPtr& question, Answer answer) {
  question->answer = std::move(answer);
  question->answered_ns = now_ns_();
  if (question->callers > 0) known_.erase(question->request.SerializeAsString());
  answered_.notify_all();
}

void QuestionDesk::Run(const Work& work) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return has_ended_ || !open_.empty(); });
    if (has_ended_) return;
    const QuestionPtr question = open_.front();
    open_.pop_front();
    lock.unlock();
    Answer answer = work(question->request);
    lock.lock();
    Answered(question, std::move(answer));
  }
}

void QuestionDesk::End() {
  const std::lock_guard<std::mutex> lock(mutex_);
  has_ended_ = true;
  wake_.notify_all();
  answered_.notify_all();
}

}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
// Answers queries over all history, one after the other, on a thread of its own. A query can take
// longer than its caller waits: the desk goes on, and keeps the answer for a minute, for the caller
// that asks again. It works on the same query once, however many ask it, and drops one that was not
// asked again for ten seconds when its turn comes. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/steady_clock.h"
#include "rollcall/v1/store.pb.h"

namespace rollcall {

// Who asks: each caller, and all callers of the same tenants, have a share of the desk.
struct HistoryCaller {
  std::string who;
  std::vector<std::string> tenants;  // that the caller may see; none: all
};

class QuestionDesk {
 public:
  using Answer = absl::StatusOr<v1::HistoryAnswer>;
  using Work = std::function<Answer(const v1::HistoryQuery&)>;

  explicit QuestionDesk(std::function<int64_t()> now_ns = SteadyNs) : now_ns_(std::move(now_ns)) {}
  QuestionDesk(const QuestionDesk&) = delete;
  QuestionDesk& operator=(const QuestionDesk&) = delete;

  // Waits at most `patience`, and not at all for a query that was put off before. kAborted: the
  // desk goes on, and the caller may ask again. kResourceExhausted: too many queries wait, or too
  // many of this caller, or of callers of these tenants. kUnavailable: the desk has ended.
  Answer Ask(const v1::HistoryQuery& query, const HistoryCaller& caller,
             std::chrono::nanoseconds patience);

  // Answers queries by `work` until End(). For one thread.
  void Run(const Work& work);
  void End();

 private:
  struct Question {
    v1::HistoryQuery query;
    HistoryCaller caller;     // has asked first
    bool is_put_off = false;  // a caller was told to ask again
    int callers = 0;          // that wait now
    int64_t asked_ns = 0;     // the last time
    std::optional<Answer> answer;
    int64_t answered_ns = 0;
  };
  using QuestionPtr = std::shared_ptr<Question>;
  using Known = std::map<std::string, QuestionPtr>;

  bool HasRoomFor(const HistoryCaller& caller) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of the questions like these, one may have so many times what is left for others.
  bool HasRoomFor(const std::function<bool(const Question&)>& is_own, size_t share) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOld(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Answer Give(Known::iterator at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepIfWanted(const QuestionPtr& question) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<int64_t()> now_ns_;
  Mutex mutex_;
  Condition wake_, answered_;
  Known known_ ABSL_GUARDED_BY(mutex_);                   // by the bytes of the query
  std::deque<QuestionPtr> open_ ABSL_GUARDED_BY(mutex_);  // none has begun
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace rollcall

// How many calls a second a job makes, now and over the last minutes.
//
// Pure: time is an argument. One owner, no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace rollcall {

class CallRate {
 public:
  static constexpr int64_t kEveryNs = 2'000'000'000;
  static constexpr size_t kKept = 300;  // ten minutes

  // Due when a look would begin a new value; counting calls costs a walk over all members.
  bool IsDue(int64_t now_ns) const { return last_ns_ == 0 || now_ns - last_ns_ >= kEveryNs; }

  // `calls`: entered by all ranks since the job began.
  void Note(int64_t now_ns, uint64_t calls, int32_t ranks);

  // Of an average rank, between the last two looks. 0: nothing moves, or nothing is known yet.
  double now() const { return history_.empty() ? 0 : history_.back(); }
  // One value for each look, oldest first.
  const std::deque<double>& history() const { return history_; }

 private:
  int64_t last_ns_ = 0;
  uint64_t last_calls_ = 0;
  std::deque<double> history_;
};

}  // namespace rollcall

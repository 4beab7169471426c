// SPDX-License-Identifier: Apache-2.0
// One try to deliver an alert: a POST, or a command. Takes no longer than its time, whatever the
// other side does, and ends early when it is cancelled.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

#include "absl/status/status.h"

namespace rollcall {

// Set by whoever does not want to wait any more. Thread-safe.
class Cancellation {
 public:
  void Cancel() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_cancelled_ = true;
    wake_.notify_all();
  }
  // Waits for it. True: it has come.
  bool WaitFor(std::chrono::milliseconds time) {
    std::unique_lock<std::mutex> lock(mutex_);
    return wake_.wait_for(lock, time, [this] { return is_cancelled_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_cancelled_ = false;
};

inline constexpr std::chrono::seconds kDeliverWithin{10};

// kInvalidArgument: it will never be taken, and needs no second try. The address is a secret where
// it comes from a file, and often where it does not: errors do not name it.
absl::Status PostAlert(const std::string& url, const std::string& body, Cancellation* cancellation);

// The body is the command's standard input. A command that runs too long is killed, and what it has
// started too. `open_files`: its soft limit, for programs that loop over all descriptors or select()
// among them; 0: as this process has it.
absl::Status RunAlertCommand(const std::string& command, const std::string& body,
                             uint64_t open_files, Cancellation* cancellation);

}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
// One attempt to deliver an alert: a POST, or a command. Takes at most kDeliverWithin, whatever the
// receiver does, and ends early on cancellation.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

#include "absl/status/status.h"

namespace rollcall {

// Cancels a wait in another thread. Thread-safe.
class Cancellation {
 public:
  void Cancel() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_cancelled_ = true;
    wake_.notify_all();
  }
  // Waits for Cancel(). Returns true once it was called, false after `time`.
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

// kInvalidArgument: the receiver refuses this alert, so a retry does not help. Errors never contain
// the URL, because a URL is often a secret.
// `key` goes into the header Idempotency-Key, with %XX for characters that a header cannot have.
absl::Status PostAlert(const std::string& url, const std::string& body, const std::string& key,
                       Cancellation* cancellation);

// Gives `body` to the command as standard input. Kills a command that runs too long, with all its
// children. `open_files` is the command's soft limit, for programs that loop over all descriptors
// or call select(); 0 keeps the limit of this process.
absl::Status RunAlertCommand(const std::string& command, const std::string& body,
                             uint64_t open_files, Cancellation* cancellation);

}  // namespace rollcall

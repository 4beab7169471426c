// SPDX-License-Identifier: Apache-2.0
// One attempt to deliver an alert: by requests, or a command. Takes at most kDeliverWithin,
// whatever the receiver does, and ends early on cancellation.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"

namespace rollcall {

// Cancels a wait in another thread. Thread-safe.
class Cancellation {
 public:
  void Cancel() {
    const MutexLock lock(mutex_);
    is_cancelled_ = true;
    wake_.NotifyAll();
  }
  // Waits for Cancel(). Returns true once it was called, false after `time`.
  bool WaitFor(std::chrono::milliseconds time) {
    const auto deadline = std::chrono::steady_clock::now() + time;
    const MutexLock lock(mutex_);
    while (!is_cancelled_ && wake_.WaitUntil(mutex_, deadline)) {
    }
    return is_cancelled_;
  }

 private:
  Mutex mutex_;
  Condition wake_;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

inline constexpr std::chrono::seconds kDeliverWithin{10};

struct AlertRequest {
  const char* method = "POST";  // or "PUT"
  std::string url;
  std::string body;             // JSON
  std::string authorization{};  // header Authorization, or empty
  bool may_be_refused = false;  // the receiver may not have it, and needs only the others
  std::string ca_file{};  // PEM of who signed the receiver's certificate; empty for the system's
  int done_before = 0;    // the status with which the receiver reports that it has it already, or 0
  const char* content_type = "application/json";
};

// Sends the requests one after the other, until one fails.
// kInvalidArgument: the receiver refuses this alert, so a retry does not help. Errors contain
// neither the URL nor the header, because both are often secrets. `key` goes into the header
// Idempotency-Key, with %XX for characters that a header cannot have. With a `signing_key` each
// request is signed (security/webhook_signature.h).
absl::Status SendAlertRequests(const std::vector<AlertRequest>& requests, const std::string& key,
                               const std::string& signing_key, Cancellation* cancellation);

// Gives `body` to the command as standard input. Kills a command that runs too long, with all its
// children. `open_files` is the command's soft limit, for programs that loop over all descriptors
// or call select(); 0 keeps the limit of this process.
absl::Status RunAlertCommand(const std::string& command, const std::string& body,
                             uint64_t open_files, Cancellation* cancellation);

}  // namespace rollcall

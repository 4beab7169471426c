// SPDX-License-Identifier: Apache-2.0
// Reports confirmed incidents, and their end, to webhooks and commands.
//
// Each incident is told once, and its end once; what cannot be delivered is tried again, later and
// later, for an hour. Each receiver has a thread of its own, so that none holds up another, nor the
// daemon.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/server/loose_thread.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

enum class AlertKind { kJson, kSlack, kPagerDuty, kAlertmanager, kCommand };

struct AlertTarget {
  AlertKind kind = AlertKind::kJson;
  // A URL, a command line, PagerDuty's routing key; or "@FILE", which holds it and is read anew for
  // each alert, so that a secret is in no process list and may change.
  std::string where;
};

struct AlertOptions {
  std::vector<AlertTarget> targets;
  std::string template_text;  // of kJson's body; "" for the usual one
  std::string page;           // where the page is to be found, for links; "" if nobody said
  int64_t first_pause_ns = 1'000'000'000;
  int64_t longest_pause_ns = 300'000'000'000;
  int64_t give_up_after_ns = 3'600'000'000'000;
  std::chrono::seconds finish_within{11};
  uint64_t open_files = 0;  // soft limit for commands; 0: as this process has it
};

// "slack=https://...", "pagerduty=@/etc/rollcall/key", "exec=mail -s hang me". Errors say what
// kinds there are.
absl::StatusOr<AlertTarget> ParseAlertTarget(const std::string& text);

// What is sent. `where`: with "@FILE" replaced. Pure.
std::string AlertBody(const AlertTarget& target, const std::string& where,
                      const AlertOptions& options, const v1::Incident& incident, bool resolved);

class AlertSender {
 public:
  explicit AlertSender(AlertOptions options);
  // Finish() within AlertOptions::finish_within.
  ~AlertSender();
  AlertSender(const AlertSender&) = delete;
  AlertSender& operator=(const AlertSender&) = delete;

  void Send(const v1::Incident& incident, bool resolved);

  // What is still to be sent gets one more try, from now on.
  void BeginFinish();
  // Waits for that. What is not delivered by then is given up, and logged.
  void Finish(SteadyTime deadline);

  uint64_t sent() const;
  uint64_t failed() const;
  uint64_t waiting() const;

 private:
  struct Receiver;
  struct Worker {
    std::shared_ptr<Receiver> receiver;
    std::unique_ptr<LooseThread> thread;
  };
  template <typename Value>
  uint64_t Sum(Value value) const;

  const AlertOptions options_;
  std::vector<Worker> workers_;
  std::mutex mutex_;
  std::set<std::pair<std::string, bool>> told_;  // incident and whether it was its end
};

}  // namespace rollcall

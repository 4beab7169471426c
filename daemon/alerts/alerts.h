// SPDX-License-Identifier: Apache-2.0
// Sends confirmed incidents, changes of their verdicts, what people do, and their end, to webhooks,
// mailboxes and commands.
//
// Sends each incident once and its end once, also across restarts of the daemon: an alert is in the
// outbox before it is sent, and marked there afterwards. If the outbox does not respond, the alert
// goes out without it. Retries a failed delivery with growing pauses for an hour. Each receiver has
// its own thread, so a slow receiver delays neither the others nor the daemon.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/backoff.h"
#include "base/mutex.h"
#include "base/worker.h"
#include "daemon/alerts/alert_delivery.h"
#include "daemon/alerts/alert_routes.h"
#include "daemon/alerts/alert_target.h"
#include "daemon/history/alert_outbox.h"
#include "daemon/jobs/daemon_counters.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

struct AlertOptions {
  std::vector<AlertTarget> targets;
  std::vector<AlertRoute> routes;  // AlertRoute::to are indexes of `targets`
  std::string template_text;       // body for kJson; "" for the default body
  std::string page;                // URL of the page, for links; "" if unknown
  // Address of the runbooks: "{cause}" stands for the cause; empty means those of the page.
  std::string runbook;
  // Returns the name of a user by his number, or "". Empty function: no name is known.
  std::function<std::string(uint32_t)> user_name;
  std::string sendmail = "/usr/sbin/sendmail";  // program that sends a mail: `sendmail -t -i`
  std::string mail_from;                        // empty means the program's own
  Backoff retry{1'000'000'000, 300'000'000'000};
  int64_t give_up_after_ns = 3'600'000'000'000;
  int64_t save_within_ns = 2'000'000'000;     // the longest time that an alert waits for the outbox
  int64_t updates_apart_ns = 30'000'000'000;  // from one alert of an incident to its next update
  // Incidents that the sender remembers, so that it announces each one once.
  size_t most_announced = 10'000;
  std::chrono::seconds finish_within{11};
  // Asked before each try to deliver an alert; false: another daemon may have its job, so the alert
  // waits. Empty means always.
  std::function<bool(const v1::Incident&)> may_send;
  uint64_t open_files = 0;  // soft limit for commands; 0 means the limit of this process
};

enum class AlertEvent {
  kConfirmed,
  kUpdated,
  kAnnotated,     // a person has written a note: only for receivers that are programs
  kAcknowledged,  // a person takes care of it, or no longer does
  kReminder,      // it lasts, and is not acknowledged
  kResolved
};

struct AlertMessage {
  v1::Incident incident;  // without stacks
  AlertEvent event = AlertEvent::kConfirmed;
  int32_t sequence = 1;     // number among the incident's alerts
  std::string first_cause;  // of the incident's first alert; receivers may identify it by its cause
  int32_t first_sequence = 1;  // of the first alert that this receiver got of the incident
  int64_t made_ns = 0;         // when it was made, by the wall clock; 0 if unknown
};

// "<incident>/<sequence>": equal for all attempts to deliver one alert, and for no other alert.
std::string AlertKey(const AlertMessage& message);

// Returns the message for one receiver. `where` is the target with "@FILE" replaced. Pure.
std::string AlertBody(const AlertTarget& target, const std::string& where,
                      const AlertOptions& options, const AlertMessage& message);
// The requests that deliver the message, for the kinds that have an address. Pure.
// kInvalidArgument: `where` is unusable.
absl::StatusOr<std::vector<AlertRequest>> AlertRequests(const AlertTarget& target,
                                                        const std::string& where,
                                                        const AlertOptions& options,
                                                        const AlertMessage& message);

class AlertSender {
 public:
  // `outbox` may be nullptr. `counters` counts the ends that no alert will announce, and must
  // outlive this object; nullptr if nothing is counted.
  explicit AlertSender(AlertOptions options, std::shared_ptr<AlertOutbox> outbox = nullptr,
                       DaemonCounters* counters = nullptr);
  // Finish() within AlertOptions::finish_within.
  ~AlertSender();
  AlertSender(const AlertSender&) = delete;
  AlertSender& operator=(const AlertSender&) = delete;

  // Continues after a restart: sends what is unsent. `rows` is Continuation::alerts. Call it before
  // Send().
  void Restore(const std::vector<AlertRow>& rows);

  // Ignores an event that was announced, an update without news (WhatIsSaid(), alert_news.h) that
  // changes not who gets alerts of the incident either, all but the first event of an incident that
  // was not announced, and all that follows its end. A receiver that got the first alert of an
  // incident gets all that follow.
  void Send(const v1::Incident& incident, AlertEvent event);

  // Another daemon has the job: drops its alerts, and what was announced of it.
  void DropJob(const JobId& job);
  // Whether an alert of the job is on its way to a receiver at this moment.
  bool IsDelivering(const JobId& job) const;

  // Saves all alerts again, for a new file.
  void SaveAgain();

  // Gives each waiting alert one more attempt, from now on. With an outbox, a restarted daemon
  // tries again what fails.
  void BeginFinish();
  // Waits for these attempts. Gives up and logs what is not delivered by `deadline`.
  void Finish(SteadyTime deadline);

  uint64_t sent() const;
  uint64_t failed() const;
  uint64_t waiting() const;
  // Announced incidents whose text is still in memory: those that last, and those whose last alert
  // a receiver lacks.
  size_t texts() const;

 private:
  struct Receiver;
  struct Delivery {
    std::shared_ptr<Receiver> receiver;
    std::unique_ptr<Worker> worker;
  };
  struct Counts {
    uint64_t sent = 0, failed = 0, waiting = 0;
  };
  Counts Sum() const;  // of all receivers

  // What was announced of one incident.
  struct Announced {
    JobId job;
    std::string first_cause;
    std::string said;  // WhatIsSaid() of the newest alert: what makes an update one
    AlertRow newest;   // without its body once the incident is over; of sequence 0 if there is none
                       // yet
    std::map<std::string, int32_t> told;  // receivers -> the first alert that they get
    std::set<std::string> addressed;      // receivers of the newest alert
    // The body of the last alert. It goes when the last receiver has the alert.
    std::weak_ptr<const v1::Incident> last_body;
    int64_t due_ns = 0;    // when the newest alert may go out, on the steady clock
    bool is_over = false;  // its end was announced
  };

  std::set<std::string> Addressees(const v1::Incident& head, AlertEvent event,
                                   const Announced& announced) const;
  static void Address(std::set<std::string> to, Announced* announced);
  void Continue(const AlertRow& row, int64_t ago_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Announce(const v1::Incident& head, AlertEvent event, std::set<std::string> to,
                Announced* announced);
  void Post(const AlertRow& row, bool hold, Announced* announced);
  void Save(const AlertRow& row);
  void ForgetOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void DropBody(Announced* announced);
  bool IsWaiting(const AlertRow& row) const;

  const AlertOptions options_;
  const std::shared_ptr<AlertOutbox> outbox_;
  DaemonCounters* const counters_;
  std::vector<Delivery> deliveries_;
  mutable Mutex mutex_;
  std::map<std::string, Announced> announced_ ABSL_GUARDED_BY(mutex_);  // by incident
};

}  // namespace rollcall

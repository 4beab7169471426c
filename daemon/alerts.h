// Tells others of confirmed incidents, and that they are over: webhooks and commands.
//
// Each incident is told once, and its end once; what cannot be delivered is tried again, later and
// later, for an hour. Sending happens on a thread of its own and never holds up the daemon.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
  // What is still to be sent gets one more try.
  ~AlertSender();
  AlertSender(const AlertSender&) = delete;
  AlertSender& operator=(const AlertSender&) = delete;

  void Send(const v1::Incident& incident, bool resolved);

  uint64_t sent() const;
  uint64_t failed() const;

 private:
  struct Letter {
    AlertTarget target;
    v1::Incident incident;
    bool resolved = false;
    size_t receiver = 0;       // index of the target
    int64_t first_try_ns = 0;  // 0: not tried yet
    int64_t next_try_ns = 0;
    int64_t pause_ns = 0;
    bool said = false;  // that it could not be delivered
  };

  void Run();
  // The next one to be tried; letters_.end() if there is none.
  std::deque<Letter>::iterator NextDue();
  void Deliver(Letter letter, bool last_chance);

  const AlertOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::deque<Letter> letters_;
  std::set<std::pair<std::string, bool>> told_;  // incident and whether it was its end
  uint64_t sent_ = 0;
  uint64_t failed_ = 0;
  std::thread thread_;
};

}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
#include "daemon/alerts/alerts.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/steady_clock.h"
#include "daemon/alerts/alert_delivery.h"
#include "daemon/alerts/alert_news.h"
#include "daemon/alerts/alert_room.h"

namespace rollcall {
namespace {

constexpr size_t kMaxWaiting = 1000;
constexpr int64_t kAskAgainNs = 500'000'000;  // whether the alert may go out
// An update that is about to go out is not replaced.
constexpr int64_t kReplaceUntilNs = 100'000'000;

struct EventName {
  const char* name;
  AlertEvent event;
};
constexpr EventName kEvents[] = {
    {"confirmed", AlertEvent::kConfirmed}, {"updated", AlertEvent::kUpdated},
    {"annotated", AlertEvent::kAnnotated}, {"acknowledged", AlertEvent::kAcknowledged},
    {"reminder", AlertEvent::kReminder},   {"resolved", AlertEvent::kResolved}};

const char* AlertEventName(AlertEvent event) {
  for (const EventName& known : kEvents) {
    if (known.event == event) return known.name;
  }
  return "";
}

// Returns nullopt if a later release wrote the alert.
std::optional<AlertEvent> FindEvent(const std::string& name) {
  for (const EventName& known : kEvents) {
    if (known.name == name) return known.event;
  }
  return std::nullopt;
}

absl::StatusOr<std::string> ReadTarget(const std::string& where) {
  if (where.empty() || where[0] != '@') return where;
  std::ifstream file(where.substr(1));
  std::string text;
  if (!std::getline(file, text)) {
    return absl::NotFoundError(absl::StrCat("cannot read ", where.substr(1)));
  }
  return std::string(absl::StripAsciiWhitespace(text));
}

std::string Quoted(const std::string& word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", R"('\'')"}}), "'");
}

// The shell reads the file of a command itself: every user of the host can see its arguments.
std::string CommandIn(const std::string& where) {
  if (where[0] != '@') return where;
  const std::string path = where.substr(1);
  const bool is_bare = path.find('/') == std::string::npos;  // the shell would search PATH for it
  return absl::StrCat(". ", Quoted(absl::StrCat(is_bare ? "./" : "", path)));
}

// -t: the addresses are in the mail, where no other user of the host sees them. -i: a line with a
// dot does not end the mail.
std::string MailCommand(const std::string& sendmail) {
  return absl::StrCat(Quoted(sendmail), " -t -i");
}

}  // namespace

std::string AlertKey(const AlertMessage& message) {
  return absl::StrCat(message.incident.id(), "/", message.sequence);
}

// One receiver: its queue of alerts, and the body of the thread that delivers them. That thread
// shares the receiver, because it may outlive the sender.
struct AlertSender::Receiver {
  Receiver(AlertTarget to, AlertOptions given, std::shared_ptr<AlertOutbox> keeper)
      : target(std::move(to)),
        options(std::move(given)),
        id(ReceiverId(target)),
        outbox(std::move(keeper)) {}

  struct Alert {
    AlertMessage message;
    // Receivers that need the alert; the last of them ends it.
    std::shared_ptr<std::atomic<int>> open_receivers;
    // Of the end of an incident, for a new outbox while a receiver needs the alert; else nullptr.
    std::shared_ptr<const v1::Incident> body;
    int64_t due_ns = 0;    // not before this time
    bool is_held = false;  // waits for the outbox
    bool IsSame(const std::string& incident, int32_t sequence) const {
      return message.incident.id() == incident && message.sequence == sequence;
    }
    int64_t first_try_ns = 0;  // 0 if not tried yet
    int64_t next_try_ns = 0;
    int failures = 0;
    bool said = false;  // that delivery failed
  };

  void Put(Alert alert);
  void Release(const std::string& incident, int32_t sequence);
  void DropUpdates(const std::string& incident) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Settle(const Alert& alert);
  void Run();
  bool Has(const std::string& incident, int32_t sequence);
  void DropJob(const JobId& job);
  bool MaySend(const Alert& alert) const {
    return options.may_send == nullptr || options.may_send(alert.message.incident);
  }
  std::deque<Alert>::iterator FindOneThatMakesRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  std::deque<Alert>::iterator NextDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Deliver(Alert alert, bool last_chance);
  absl::Status TryOnce(const Alert& alert);

  const AlertTarget target;
  const AlertOptions options;
  const std::string id;
  const std::shared_ptr<AlertOutbox> outbox;  // may be nullptr
  Cancellation cancellation;

  Mutex mutex;
  Condition wake;
  std::deque<Alert> alerts ABSL_GUARDED_BY(mutex);
  bool finishing ABSL_GUARDED_BY(mutex) = false;
  bool is_busy ABSL_GUARDED_BY(mutex) = false;  // delivering one more alert
  JobId busy_with ABSL_GUARDED_BY(mutex);       // its job
  bool dropped ABSL_GUARDED_BY(mutex) = false;  // the queue was full since it was last empty
  uint64_t sent ABSL_GUARDED_BY(mutex) = 0;
  uint64_t failed ABSL_GUARDED_BY(mutex) = 0;
};

void AlertSender::Receiver::Put(Alert alert) {
  const MutexLock lock(mutex);
  const auto older = std::find_if(alerts.begin(), alerts.end(), [&alert](const Alert& other) {
    return other.IsSame(alert.message.incident.id(), alert.message.sequence);
  });
  if (older != alerts.end()) {
    older->message = std::move(alert.message);
    older->open_receivers = std::move(alert.open_receivers);  // it may have more receivers now
    wake.NotifyAll();
    return;
  }
  if (alert.message.event == AlertEvent::kResolved) DropUpdates(alert.message.incident.id());
  if (alerts.size() >= kMaxWaiting) {
    if (!dropped) {
      spdlog::error("dropped an alert for {}: {} alerts wait; check that the receiver responds",
                    ReceiverInWords(target), alerts.size());
    }
    dropped = true;
    const auto last = FindOneThatMakesRoom();
    Settle(*last);
    alerts.erase(last);
    ++failed;
  }
  alert.next_try_ns = alert.due_ns;
  if (alert.is_held) {
    alert.next_try_ns = std::max(alert.due_ns, SteadyNs() + options.save_within_ns);
  }
  alerts.push_back(std::move(alert));
  wake.NotifyAll();
}

std::deque<AlertSender::Receiver::Alert>::iterator AlertSender::Receiver::FindOneThatMakesRoom() {
  std::vector<const v1::Incident*> waiting;
  for (const Alert& alert : alerts) waiting.push_back(&alert.message.incident);
  return alerts.begin() + static_cast<std::ptrdiff_t>(FindAlertThatMakesRoom(waiting));
}

// The end of an incident makes its waiting updates superfluous.
void AlertSender::Receiver::DropUpdates(const std::string& incident) {
  for (auto at = alerts.begin(); at != alerts.end();) {
    const AlertMessage& message = at->message;
    const bool is_update =
        message.event == AlertEvent::kUpdated && message.incident.id() == incident;
    if (is_update) Settle(*at);
    at = is_update ? alerts.erase(at) : std::next(at);
  }
}

// The disk has the alert.
void AlertSender::Receiver::Release(const std::string& incident, int32_t sequence) {
  const MutexLock lock(mutex);
  for (Alert& alert : alerts) {
    if (!alert.is_held || !alert.IsSame(incident, sequence)) continue;
    alert.is_held = false;
    alert.next_try_ns = alert.due_ns;
    wake.NotifyAll();
  }
}

bool AlertSender::Receiver::Has(const std::string& incident, int32_t sequence) {
  const MutexLock lock(mutex);
  return std::any_of(alerts.begin(), alerts.end(),
                     [&](const Alert& alert) { return alert.IsSame(incident, sequence); });
}

// The alert is delivered, given up or superfluous.
void AlertSender::Receiver::Settle(const Alert& alert) {
  if (outbox == nullptr) return;
  const std::string& incident = alert.message.incident.id();
  const bool is_last = alert.open_receivers->fetch_sub(1) == 1;
  outbox->Mark(incident, alert.message.sequence, is_last ? "" : id);
}

// The next alert to try; alerts.end() if none waits. The later alerts of an incident wait until the
// earlier ones are delivered or given up.
std::deque<AlertSender::Receiver::Alert>::iterator AlertSender::Receiver::NextDue() {
  auto next = alerts.end();
  for (auto at = alerts.begin(); at != alerts.end(); ++at) {
    const bool waits = std::any_of(alerts.begin(), alerts.end(), [&at](const Alert& other) {
      return other.message.sequence < at->message.sequence &&
             other.message.incident.id() == at->message.incident.id();
    });
    if (!waits && (next == alerts.end() || at->next_try_ns < next->next_try_ns)) next = at;
  }
  return next;
}

void AlertSender::Receiver::Run() {
  MutexLock lock(mutex);
  while (true) {
    const auto due = NextDue();
    if (due == alerts.end()) {
      dropped = false;
      if (finishing) return;
      wake.Wait(mutex);
      continue;
    }
    const int64_t wait_ns = due->next_try_ns - SteadyNs();
    if (wait_ns > 0 && !finishing) {
      wake.WaitFor(mutex, std::chrono::nanoseconds(wait_ns));
      continue;
    }
    if (!MaySend(*due)) {
      if (finishing) {  // the job's daemon sends it
        alerts.erase(due);
      } else {
        due->next_try_ns = SteadyNs() + kAskAgainNs;
      }
      continue;
    }
    Alert alert = std::move(*due);
    alerts.erase(due);
    const bool last_chance = finishing;
    is_busy = true;
    busy_with = ReadJobKey(alert.message.incident);
    lock.Unlock();
    if (alert.is_held) {
      spdlog::warn(
          "sending the alert {} unsaved, because the history does not respond; a "
          "restarted daemon may send it again",
          AlertKey(alert.message));
      alert.is_held = false;
    }
    Deliver(std::move(alert), last_chance);
    lock.Lock();
    is_busy = false;
  }
}

void AlertSender::Receiver::DropJob(const JobId& job) {
  const MutexLock lock(mutex);
  const auto is_of_job = [&job](const Alert& alert) {
    return static_cast<const JobId&>(ReadJobKey(alert.message.incident)) == job;
  };
  alerts.erase(std::remove_if(alerts.begin(), alerts.end(), is_of_job), alerts.end());
}

absl::Status AlertSender::Receiver::TryOnce(const Alert& alert) {
  const auto where = ReadTarget(target.where);
  if (!where.ok()) return where.status();
  if (target.kind == AlertKind::kCommand || target.kind == AlertKind::kEmail) {
    const std::string body = AlertBody(target, *where, options, alert.message);
    const std::string command =
        target.kind == AlertKind::kEmail ? MailCommand(options.sendmail) : CommandIn(target.where);
    return RunAlertCommand(command, body, options.open_files, &cancellation);
  }
  const auto requests = AlertRequests(target, *where, options, alert.message);
  if (!requests.ok()) return requests.status();
  std::string signing_key;
  if (!target.signing_key.empty()) {
    auto read = ReadTarget(absl::StrCat("@", target.signing_key));
    if (!read.ok()) return read.status();
    signing_key = *std::move(read);
  }
  return SendAlertRequests(*requests, AlertKey(alert.message), signing_key, &cancellation);
}

void AlertSender::Receiver::Deliver(Alert alert, bool last_chance) {
  const int64_t now_ns = SteadyNs();
  if (alert.first_try_ns == 0) alert.first_try_ns = now_ns;
  const absl::Status status = TryOnce(alert);
  const bool give_up = last_chance || absl::IsInvalidArgument(status) ||
                       now_ns - alert.first_try_ns > options.give_up_after_ns;
  if (!status.ok() && (give_up || !alert.said)) {
    spdlog::warn("cannot deliver the alert of {} ({}): {}; {}", alert.message.incident.id(),
                 ReceiverInWords(target), std::string(status.message()),
                 !give_up                           ? "trying again later"
                 : last_chance && outbox != nullptr ? "the next daemon tries again"
                                                    : "given up");
    alert.said = true;
  }
  // A restarted daemon tries again what only failed in the end.
  if (status.ok() || (give_up && (!last_chance || absl::IsInvalidArgument(status)))) Settle(alert);
  const MutexLock lock(mutex);
  if (status.ok()) {
    ++sent;
  } else if (give_up) {
    ++failed;
  } else {
    alert.next_try_ns = SteadyNs() + options.retry.PauseNs(++alert.failures);
    alerts.push_back(std::move(alert));
  }
}

AlertSender::AlertSender(AlertOptions options, std::shared_ptr<AlertOutbox> outbox,
                         DaemonCounters* counters)
    : options_(std::move(options)), outbox_(std::move(outbox)), counters_(counters) {
  for (const AlertTarget& target : options_.targets) {
    Delivery& delivery = deliveries_.emplace_back();
    delivery.receiver = std::make_shared<Receiver>(target, options_, outbox_);
    delivery.worker = std::make_unique<Worker>();
    delivery.worker->Start();
    delivery.worker->Post([receiver = delivery.receiver] { receiver->Run(); });
  }
}

AlertSender::~AlertSender() { Finish(std::chrono::steady_clock::now() + options_.finish_within); }

void AlertSender::Send(const v1::Incident& incident, AlertEvent event) {
  if (deliveries_.empty()) return;
  const MutexLock lock(mutex_);
  const auto known = announced_.find(incident.id());
  const bool is_first = known == announced_.end();
  // Only a receiver that got the beginning of an incident needs its changes and its end.
  if (is_first != (event == AlertEvent::kConfirmed)) return;
  if (!is_first && known->second.is_over) return;
  v1::Incident head = incident;
  head.clear_stacks();
  head.clear_stack_tree();
  head.clear_host_facts();
  if (is_first && announced_.size() >= options_.most_announced) ForgetOne();
  Announced& announced = announced_[incident.id()];
  announced.job = ReadJobKey(incident);
  std::set<std::string> to = Addressees(head, event, announced);
  if (!to.empty()) {
    Announce(head, event, std::move(to), &announced);
  } else if (event == AlertEvent::kResolved) {
    announced_.erase(incident.id());  // no receiver has had it
  }
}

// Returns the receivers of the next alert of the incident. Those that had an alert of it get the
// end and each correction; the others get their first alert as soon as a route fits.
std::set<std::string> AlertSender::Addressees(const v1::Incident& head, AlertEvent event,
                                              const Announced& announced) const {
  std::set<std::string> to;
  if (event == AlertEvent::kAnnotated) {
    for (const Delivery& delivery : deliveries_) {
      const Receiver& receiver = *delivery.receiver;
      const bool was_told = announced.told.count(receiver.id) > 0;
      if (was_told && TakesAnnotations(receiver.target.kind)) to.insert(receiver.id);
    }
    return to;
  }
  const bool is_for_all = event == AlertEvent::kResolved || event == AlertEvent::kAcknowledged ||
                          event == AlertEvent::kReminder;
  if (is_for_all || announced.said != WhatIsSaid(head)) {
    for (const auto& [receiver, sequence] : announced.told) to.insert(receiver);
  }
  if (is_for_all) return to;
  const std::vector<size_t> routed = RoutedReceivers(options_.routes, head);
  for (size_t i = 0; i < deliveries_.size(); ++i) {
    const Receiver& receiver = *deliveries_[i].receiver;
    const bool is_routed = std::binary_search(routed.begin(), routed.end(), i);
    const bool is_meant = is_routed || !receiver.target.is_routed;
    if (is_meant && announced.told.count(receiver.id) == 0) to.insert(receiver.id);
  }
  return to;
}

// The newest alert goes to these.
void AlertSender::Address(std::set<std::string> to, Announced* announced) {
  for (const std::string& receiver : to) {
    announced->told.emplace(receiver, announced->newest.sequence);
  }
  announced->addressed = std::move(to);
}

// The oldest of those whose end no receiver wants: the receivers still want the end of the others.
void AlertSender::ForgetOne() {
  const auto is_wanted = [](const Announced& announced) {
    return !announced.is_over && !announced.told.empty();
  };
  const auto least = std::min_element(
      announced_.begin(), announced_.end(), [&is_wanted](const auto& a, const auto& b) {
        return std::make_pair(is_wanted(a.second), a.second.newest.made_ns) <
               std::make_pair(is_wanted(b.second), b.second.newest.made_ns);
      });
  if (least == announced_.end()) return;
  if (is_wanted(least->second)) {
    spdlog::error("will send no alert when {} ends: {} incidents are open", least->first,
                  announced_.size());
    if (counters_ != nullptr) counters_->CountDropped(Dropped::kAlerts, 1);
  }
  announced_.erase(least);
}

// Nothing more will be announced of the incident.
void AlertSender::DropBody(Announced* announced) {
  announced->newest.body = v1::Incident();
  announced->said = std::string();
}

void AlertSender::Announce(const v1::Incident& head, AlertEvent event, std::set<std::string> to,
                           Announced* announced) {
  const int64_t now_ns = SteadyNs();
  AlertRow& row = announced->newest;
  if (row.sequence == 0) {
    event = AlertEvent::kConfirmed;
    announced->first_cause = RootCause(head);
  }
  // The receiver of the first alert need not wait.
  const bool may_wait = event == AlertEvent::kUpdated &&
                        std::all_of(to.begin(), to.end(), [announced](const std::string& receiver) {
                          return announced->told.count(receiver) > 0;
                        });
  const bool replaces = may_wait && FindEvent(row.kind) == AlertEvent::kUpdated &&
                        now_ns < announced->due_ns - kReplaceUntilNs;
  if (replaces) {
    to.insert(announced->addressed.begin(), announced->addressed.end());
  } else {
    // What people do waits only for the alerts before it, and delays none.
    if (event != AlertEvent::kAnnotated && event != AlertEvent::kAcknowledged) {
      announced->due_ns =
          may_wait ? std::max(now_ns, announced->due_ns + options_.updates_apart_ns) : now_ns;
    }
    ++row.sequence;
  }
  Address(std::move(to), announced);
  row.incident = head.id();
  row.kind = AlertEventName(event);
  row.made_ns = absl::GetCurrentTimeNanos();
  row.body = head;
  row.sent = false;
  // People have not heard of what has changed by a note.
  if (event != AlertEvent::kAnnotated) announced->said = WhatIsSaid(head);
  announced->is_over = event == AlertEvent::kResolved;
  Post(row, outbox_ != nullptr, announced);
  if (outbox_ != nullptr) Save(row);
  if (announced->is_over) DropBody(announced);
}

// Gives the alert to the receivers that lack it.
void AlertSender::Post(const AlertRow& row, bool hold, Announced* announced) {
  Receiver::Alert alert;
  alert.message.incident = row.body;
  alert.message.event = FindEvent(row.kind).value_or(AlertEvent::kConfirmed);
  alert.message.sequence = row.sequence;
  alert.message.first_cause = announced->first_cause;
  alert.message.made_ns = row.made_ns;
  alert.due_ns = announced->due_ns;
  if (announced->is_over && outbox_ != nullptr) {
    alert.body = std::make_shared<const v1::Incident>(row.body);
    announced->last_body = alert.body;
  }
  alert.is_held = hold;
  std::vector<Receiver*> missing;
  for (const Delivery& delivery : deliveries_) {
    const std::string& id = delivery.receiver->id;
    const bool lacks_it = announced->addressed.count(id) > 0 && row.receivers.count(id) == 0;
    if (lacks_it) missing.push_back(delivery.receiver.get());
  }
  alert.open_receivers = std::make_shared<std::atomic<int>>(static_cast<int>(missing.size()));
  const AlertEvent event = alert.message.event;
  for (Receiver* receiver : missing) {
    const int32_t first = announced->told[receiver->id];
    alert.message.first_sequence = first;
    alert.message.event = first == row.sequence ? AlertEvent::kConfirmed : event;
    receiver->Put(alert);
  }
  if (missing.empty() && outbox_ != nullptr) outbox_->Mark(row.incident, row.sequence, "");
}

void AlertSender::Save(const AlertRow& row) {
  std::vector<std::weak_ptr<Receiver>> receivers;
  for (const Delivery& delivery : deliveries_) receivers.push_back(delivery.receiver);
  outbox_->Save(row, [receivers, incident = row.incident, sequence = row.sequence] {
    for (const std::weak_ptr<Receiver>& weak : receivers) {
      if (const auto receiver = weak.lock()) receiver->Release(incident, sequence);
    }
  });
}

void AlertSender::Restore(const std::vector<AlertRow>& rows) {
  if (deliveries_.empty()) return;
  const int64_t ago_ns = absl::GetCurrentTimeNanos() - SteadyNs();  // wall to steady clock
  const MutexLock lock(mutex_);
  for (const AlertRow& row : rows) Continue(row, ago_ns);
}

// The next alert of its incident, from an earlier daemon. The same routes give the same receivers.
void AlertSender::Continue(const AlertRow& row, int64_t ago_ns) {
  Announced& announced = announced_[row.incident];
  announced.job = ReadJobKey(row.body);
  const std::optional<AlertEvent> known = FindEvent(row.kind);
  // What this release cannot word is for the release that can. Its number is taken all the same.
  const AlertEvent event = known.value_or(AlertEvent::kAnnotated);
  if (announced.newest.sequence == 0) {
    announced.first_cause = RootCause(row.body);
    if (event != AlertEvent::kConfirmed) {  // the earlier alerts were in another file
      for (const std::string& receiver : Addressees(row.body, AlertEvent::kConfirmed, announced)) {
        announced.told.emplace(receiver, 1);
      }
    }
  }
  std::set<std::string> to = Addressees(row.body, event, announced);
  to.insert(row.receivers.begin(), row.receivers.end());
  // As in Announce(): what a note shows is not news for people. They had the alert before it.
  if (event != AlertEvent::kAnnotated || announced.newest.sequence == 0) {
    announced.said = WhatIsSaid(row.body);
  }
  announced.newest = row;
  Address(std::move(to), &announced);
  announced.is_over = event == AlertEvent::kResolved;
  announced.due_ns = std::min(row.made_ns - ago_ns, SteadyNs());
  const bool is_late = SteadyNs() - announced.due_ns > options_.give_up_after_ns;
  if (!row.sent && !is_late && known.has_value()) Post(row, false, &announced);
  if (!row.sent && is_late && outbox_ != nullptr) outbox_->Mark(row.incident, row.sequence, "");
  announced.newest.receivers.clear();
  if (announced.is_over) DropBody(&announced);
}

void AlertSender::DropJob(const JobId& job) {
  const MutexLock lock(mutex_);
  for (auto at = announced_.begin(); at != announced_.end();) {
    at = at->second.job == job ? announced_.erase(at) : std::next(at);
  }
  for (const Delivery& delivery : deliveries_) delivery.receiver->DropJob(job);
}

bool AlertSender::IsDelivering(const JobId& job) const {
  return std::any_of(deliveries_.begin(), deliveries_.end(), [&job](const Delivery& delivery) {
    const MutexLock lock(delivery.receiver->mutex);
    return delivery.receiver->is_busy && delivery.receiver->busy_with == job;
  });
}

void AlertSender::SaveAgain() {
  if (outbox_ == nullptr) return;
  const MutexLock lock(mutex_);
  for (const auto& [incident, announced] : announced_) {
    AlertRow row = announced.newest;
    if (row.sequence == 0) continue;  // no receiver has had it
    if (announced.is_over) {
      const std::shared_ptr<const v1::Incident> body = announced.last_body.lock();
      if (body == nullptr) continue;  // all receivers have it
      row.body = *body;
    }
    row.sent = !announced.is_over && !IsWaiting(row);
    Save(row);
  }
}

bool AlertSender::IsWaiting(const AlertRow& row) const {
  return std::any_of(deliveries_.begin(), deliveries_.end(), [&row](const Delivery& delivery) {
    return delivery.receiver->Has(row.incident, row.sequence);
  });
}

void AlertSender::BeginFinish() {
  for (const Delivery& delivery : deliveries_) {
    const MutexLock lock(delivery.receiver->mutex);
    delivery.receiver->finishing = true;
    delivery.receiver->wake.NotifyAll();
  }
}

void AlertSender::Finish(SteadyTime deadline) {
  BeginFinish();
  // A cancelled delivery ends soon, unless it waits for a name server.
  constexpr auto kCancelledWithin = std::chrono::milliseconds(300);
  for (const Delivery& delivery : deliveries_) {
    if (delivery.worker->AwaitIdle(deadline - kCancelledWithin)) continue;
    const MutexLock lock(delivery.receiver->mutex);
    const size_t open = delivery.receiver->alerts.size() + delivery.receiver->is_busy;
    delivery.receiver->failed += delivery.receiver->alerts.size();
    delivery.receiver->alerts.clear();
    spdlog::error("cannot deliver {} ({}): the receiver does not respond",
                  open == 1 ? "1 alert" : absl::StrCat(open, " alerts"),
                  ReceiverInWords(delivery.receiver->target));
    delivery.receiver->cancellation.Cancel();
  }
  for (const Delivery& delivery : deliveries_) delivery.worker->Finish(deadline);
}

AlertSender::Counts AlertSender::Sum() const {
  Counts sum;
  for (const Delivery& delivery : deliveries_) {
    Receiver& receiver = *delivery.receiver;
    const MutexLock lock(receiver.mutex);
    sum.sent += receiver.sent;
    sum.failed += receiver.failed;
    sum.waiting += receiver.alerts.size() + receiver.is_busy;
  }
  return sum;
}

uint64_t AlertSender::sent() const { return Sum().sent; }
uint64_t AlertSender::failed() const { return Sum().failed; }
uint64_t AlertSender::waiting() const { return Sum().waiting; }

size_t AlertSender::texts() const {
  const MutexLock lock(mutex_);
  return static_cast<size_t>(
      std::count_if(announced_.begin(), announced_.end(), [](const auto& entry) {
        const Announced& announced = entry.second;
        return announced.newest.body.ByteSizeLong() > 0 || !announced.last_body.expired();
      }));
}

}  // namespace rollcall

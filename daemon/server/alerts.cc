// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/alerts.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "daemon/server/alert_delivery.h"
#include "proto/steady_clock.h"

namespace rollcall {
namespace {

constexpr size_t kMaxLetters = 1000;
constexpr size_t kMaxTold = 10000;
constexpr const char* kPagerDutyUrl = "https://events.pagerduty.com/v2/enqueue";

struct KindName {
  const char* name;
  AlertKind kind;
};
constexpr KindName kKinds[] = {{"json", AlertKind::kJson},
                               {"slack", AlertKind::kSlack},
                               {"pagerduty", AlertKind::kPagerDuty},
                               {"alertmanager", AlertKind::kAlertmanager},
                               {"exec", AlertKind::kCommand}};

const char* NameOf(AlertKind kind) {
  for (const KindName& known : kKinds) {
    if (known.kind == kind) return known.name;
  }
  return "";
}

absl::StatusOr<std::string> Resolved(const std::string& where) {
  if (where.empty() || where[0] != '@') return where;
  std::ifstream file(where.substr(1));
  std::string text;
  if (!std::getline(file, text)) {
    return absl::NotFoundError(absl::StrCat("cannot read ", where.substr(1)));
  }
  return std::string(absl::StripAsciiWhitespace(text));
}

}  // namespace

absl::StatusOr<AlertTarget> ParseAlertTarget(const std::string& text) {
  const size_t equals = text.find('=');
  for (const KindName& known : kKinds) {
    if (equals != std::string::npos && text.substr(0, equals) == known.name &&
        equals + 1 < text.size()) {
      return AlertTarget{known.kind, text.substr(equals + 1)};
    }
  }
  return absl::InvalidArgumentError(
      "--alert wants KIND=TARGET, with KIND one of json, slack, alertmanager (TARGET is a URL), "
      "pagerduty (a routing key), exec (a command)\n  a secret is best in a file:  "
      "--alert=slack=@/etc/rollcall/slack-url");
}

// One receiver: its letters in order, and the thread that delivers them. Shared with the thread,
// which may outlive the sender.
struct AlertSender::Receiver {
  Receiver(AlertTarget to, AlertOptions given) : target(std::move(to)), options(std::move(given)) {}

  struct Letter {
    v1::Incident incident;
    bool resolved = false;
    int64_t first_try_ns = 0;  // 0: not tried yet
    int64_t next_try_ns = 0;
    int64_t pause_ns = 0;
    bool said = false;  // that it could not be delivered
  };

  void Put(const v1::Incident& incident, bool resolved);
  void Run();
  std::deque<Letter>::iterator NextDue();
  void Deliver(Letter letter, bool last_chance);
  absl::Status TryOnce(const Letter& letter);

  const AlertTarget target;
  const AlertOptions options;
  Cancellation cancellation;

  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Letter> letters;
  bool finishing = false;
  bool is_busy = false;  // with one more letter
  bool dropped = false;  // letters were, and that is said
  uint64_t sent = 0, failed = 0;
};

void AlertSender::Receiver::Put(const v1::Incident& incident, bool resolved) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (letters.size() >= kMaxLetters) {
    if (!dropped) {
      spdlog::error("{} alerts wait for a receiver ({}): the oldest are dropped", letters.size(),
                    NameOf(target.kind));
    }
    dropped = true;
    letters.pop_front();
    ++failed;
  }
  Letter& letter = letters.emplace_back();
  letter.incident = incident;
  letter.resolved = resolved;
  letter.pause_ns = options.first_pause_ns;
  wake.notify_all();
}

// The one to be tried next; letters.end() if there is none. The end of an incident waits until its
// beginning has been delivered, or given up.
std::deque<AlertSender::Receiver::Letter>::iterator AlertSender::Receiver::NextDue() {
  auto next = letters.end();
  for (auto at = letters.begin(); at != letters.end(); ++at) {
    const bool waits =
        at->resolved && std::any_of(letters.begin(), letters.end(), [&at](const Letter& other) {
          return !other.resolved && other.incident.id() == at->incident.id();
        });
    if (!waits && (next == letters.end() || at->next_try_ns < next->next_try_ns)) next = at;
  }
  return next;
}

void AlertSender::Receiver::Run() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    const auto due = NextDue();
    if (due == letters.end()) {
      dropped = false;
      if (finishing) return;
      wake.wait(lock);
      continue;
    }
    const int64_t wait_ns = due->next_try_ns - SteadyNs();
    if (wait_ns > 0 && !finishing) {
      wake.wait_for(lock, std::chrono::nanoseconds(wait_ns));
      continue;
    }
    Letter letter = std::move(*due);
    letters.erase(due);
    const bool last_chance = finishing;
    is_busy = true;
    lock.unlock();
    Deliver(std::move(letter), last_chance);
    lock.lock();
    is_busy = false;
  }
}

absl::Status AlertSender::Receiver::TryOnce(const Letter& letter) {
  const auto where = Resolved(target.where);
  if (!where.ok()) return where.status();
  const std::string body = AlertBody(target, *where, options, letter.incident, letter.resolved);
  if (target.kind == AlertKind::kCommand) {
    return RunAlertCommand(*where, body, options.open_files, &cancellation);
  }
  const std::string url = target.kind == AlertKind::kPagerDuty ? kPagerDutyUrl : *where;
  return PostAlert(url, body, &cancellation);
}

void AlertSender::Receiver::Deliver(Letter letter, bool last_chance) {
  const int64_t now_ns = SteadyNs();
  if (letter.first_try_ns == 0) letter.first_try_ns = now_ns;
  const absl::Status status = TryOnce(letter);
  const bool give_up = last_chance || absl::IsInvalidArgument(status) ||
                       now_ns - letter.first_try_ns > options.give_up_after_ns;
  if (!status.ok() && (give_up || !letter.said)) {
    spdlog::warn("the alert of {} could not be delivered ({}): {}{}", letter.incident.id(),
                 NameOf(target.kind), std::string(status.message()),
                 give_up ? ", given up" : ", tried again later");
    letter.said = true;
  }
  const std::lock_guard<std::mutex> lock(mutex);
  if (status.ok()) {
    ++sent;
  } else if (give_up) {
    ++failed;
  } else {
    letter.next_try_ns = SteadyNs() + letter.pause_ns;
    letter.pause_ns = std::min(letter.pause_ns * 2, options.longest_pause_ns);
    letters.push_back(std::move(letter));
  }
}

AlertSender::AlertSender(AlertOptions options) : options_(std::move(options)) {
  for (const AlertTarget& target : options_.targets) {
    Worker& worker = workers_.emplace_back();
    worker.receiver = std::make_shared<Receiver>(target, options_);
    worker.thread = std::make_unique<LooseThread>();
    worker.thread->Start([receiver = worker.receiver] { receiver->Run(); });
  }
}

AlertSender::~AlertSender() {
  Finish(std::chrono::steady_clock::now() + options_.finish_within);
}

void AlertSender::Send(const v1::Incident& incident, bool resolved) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    // The end of what nobody was told of is no news either.
    if (resolved && told_.count({incident.id(), false}) == 0) return;
    if (told_.size() > kMaxTold) told_.clear();
    if (!told_.emplace(incident.id(), resolved).second) return;
  }
  v1::Incident head = incident;
  head.clear_stacks();
  head.clear_stack_tree();
  for (const Worker& worker : workers_) worker.receiver->Put(head, resolved);
}

void AlertSender::BeginFinish() {
  for (const Worker& worker : workers_) {
    const std::lock_guard<std::mutex> lock(worker.receiver->mutex);
    worker.receiver->finishing = true;
    worker.receiver->wake.notify_all();
  }
}

void AlertSender::Finish(SteadyTime deadline) {
  BeginFinish();
  // What is cancelled ends soon, but for a name that nobody resolves.
  constexpr auto kCancelledWithin = std::chrono::milliseconds(300);
  for (const Worker& worker : workers_) {
    if (worker.thread->EndsBy(deadline - kCancelledWithin)) continue;
    const std::lock_guard<std::mutex> lock(worker.receiver->mutex);
    const size_t open = worker.receiver->letters.size() + worker.receiver->is_busy;
    worker.receiver->failed += worker.receiver->letters.size();
    worker.receiver->letters.clear();
    spdlog::error("{} {} not delivered ({}): the receiver does not answer", open,
                  open == 1 ? "alert was" : "alerts were",
                  NameOf(worker.receiver->target.kind));
    worker.receiver->cancellation.Cancel();
  }
  for (const Worker& worker : workers_) worker.thread->Join(deadline);
}

template <typename Value>
uint64_t AlertSender::Sum(Value value) const {
  uint64_t sum = 0;
  for (const Worker& worker : workers_) {
    const std::lock_guard<std::mutex> lock(worker.receiver->mutex);
    sum += value(*worker.receiver);
  }
  return sum;
}

uint64_t AlertSender::sent() const {
  return Sum([](const Receiver& receiver) { return receiver.sent; });
}

uint64_t AlertSender::failed() const {
  return Sum([](const Receiver& receiver) { return receiver.failed; });
}

uint64_t AlertSender::waiting() const {
  return Sum([](const Receiver& receiver) { return receiver.letters.size() + receiver.is_busy; });
}

}  // namespace rollcall

#include "daemon/alerts.h"

#include <httplib.h>
#include <spawn.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

extern char** environ;

namespace rollcall {
namespace {

constexpr size_t kMaxLetters = 1000;
constexpr size_t kMaxTold = 10000;
constexpr int kTimeoutSeconds = 10;
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

// "https://host:1/a/b" to "https://host:1" and "/a/b".
std::pair<std::string, std::string> SplitUrl(const std::string& url) {
  const size_t scheme = url.find("://");
  const size_t path = scheme == std::string::npos ? std::string::npos : url.find('/', scheme + 3);
  if (path == std::string::npos) return {url, "/"};
  return {url.substr(0, path), url.substr(path)};
}

// The address is a secret where it comes from a file, and often where it does not: errors name the
// kind of the receiver only.
absl::Status Post(const std::string& url, const std::string& body) {
  const auto [origin, path] = SplitUrl(url);
  if (!absl::StartsWith(origin, "http://") && !absl::StartsWith(origin, "https://")) {
    return absl::InvalidArgumentError("its address begins neither with http:// nor with https://");
  }
  httplib::Client client(origin);
  client.set_connection_timeout(kTimeoutSeconds);
  client.set_read_timeout(kTimeoutSeconds);
  client.set_write_timeout(kTimeoutSeconds);
  const httplib::Result result = client.Post(path, body, "application/json");
  if (!result) return absl::UnavailableError(httplib::to_string(result.error()));
  if (result->status >= 200 && result->status < 300) return absl::OkStatus();
  const std::string problem = absl::StrCat("it answered ", result->status);
  // What it will never take needs no second try, but for "too many".
  const bool refused = result->status >= 400 && result->status < 500 && result->status != 429 &&
                       result->status != 408;
  return refused ? absl::InvalidArgumentError(problem) : absl::UnavailableError(problem);
}

// The body is its standard input.
absl::Status RunCommand(const std::string& command, const std::string& body) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::UnavailableError("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::string shell = "/bin/sh", option = "-c", text = command;
  char* arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  pid_t child = -1;
  const int spawned =
      posix_spawn(&child, "/bin/sh", &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[0]);
  // A body is some kilobytes, so it fits the pipe; SIGPIPE is ignored by whoever runs a daemon.
  if (spawned == 0 && write(ends[1], body.data(), std::min<size_t>(body.size(), 60000)) < 0) {
    // A command that reads nothing is no failure.
  }
  close(ends[1]);
  if (spawned != 0) return absl::UnavailableError("the command could not be started");
  int status = 0;
  for (int i = 0; i < kTimeoutSeconds * 100; ++i) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) {
      return WIFEXITED(status) && WEXITSTATUS(status) == 0
                 ? absl::OkStatus()
                 : absl::UnavailableError(absl::StrCat("the command failed, status ", status));
    }
    // Somebody else has collected it: `rollcall run` collects all children.
    if (ended < 0) return absl::OkStatus();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return absl::UnavailableError(absl::StrCat("the command ran longer than ", kTimeoutSeconds, " s"));
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

AlertSender::AlertSender(AlertOptions options) : options_(std::move(options)) {
  if (!options_.targets.empty()) thread_ = std::thread([this] { Run(); });
}

AlertSender::~AlertSender() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void AlertSender::Send(const v1::Incident& incident, bool resolved) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // The end of what nobody was told of is no news either.
  if (resolved && told_.count({incident.id(), false}) == 0) return;
  if (told_.size() > kMaxTold) told_.clear();
  if (!told_.emplace(incident.id(), resolved).second) return;
  v1::Incident head = incident;
  head.clear_stacks();
  head.clear_stack_tree();
  for (size_t i = 0; i < options_.targets.size(); ++i) {
    if (letters_.size() >= kMaxLetters) {
      letters_.pop_front();
      ++failed_;
    }
    Letter& letter = letters_.emplace_back();
    letter.target = options_.targets[i];
    letter.receiver = i;
    letter.incident = head;
    letter.resolved = resolved;
    letter.pause_ns = options_.first_pause_ns;
  }
  wake_.notify_all();
}

// The end of an incident waits until its beginning has been delivered, or given up.
std::deque<AlertSender::Letter>::iterator AlertSender::NextDue() {
  auto next = letters_.end();
  for (auto at = letters_.begin(); at != letters_.end(); ++at) {
    const bool waits = at->resolved && std::any_of(letters_.begin(), letters_.end(),
                                                   [&at](const Letter& other) {
                                                     return !other.resolved &&
                                                            other.receiver == at->receiver &&
                                                            other.incident.id() == at->incident.id();
                                                   });
    if (!waits && (next == letters_.end() || at->next_try_ns < next->next_try_ns)) next = at;
  }
  return next;
}

void AlertSender::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    const auto due = NextDue();
    if (due == letters_.end()) {
      if (stopping_) return;
      wake_.wait(lock);
      continue;
    }
    const int64_t wait_ns = due->next_try_ns - absl::GetCurrentTimeNanos();
    if (wait_ns > 0 && !stopping_) {
      wake_.wait_for(lock, std::chrono::nanoseconds(wait_ns));
      continue;
    }
    Letter letter = std::move(*due);
    letters_.erase(due);
    const bool last_chance = stopping_;
    lock.unlock();
    Deliver(std::move(letter), last_chance);
    lock.lock();
  }
}

void AlertSender::Deliver(Letter letter, bool last_chance) {
  const int64_t now_ns = absl::GetCurrentTimeNanos();
  if (letter.first_try_ns == 0) letter.first_try_ns = now_ns;
  const auto where = Resolved(letter.target.where);
  absl::Status status = where.status();
  if (status.ok()) {
    const std::string body =
        AlertBody(letter.target, *where, options_, letter.incident, letter.resolved);
    if (letter.target.kind == AlertKind::kCommand) {
      status = RunCommand(*where, body);
    } else {
      status = Post(letter.target.kind == AlertKind::kPagerDuty ? kPagerDutyUrl : *where, body);
    }
  }
  const bool give_up = last_chance || absl::IsInvalidArgument(status) ||
                       now_ns - letter.first_try_ns > options_.give_up_after_ns;
  if (!status.ok() && (give_up || !letter.said)) {
    spdlog::warn("the alert of {} could not be delivered ({}): {}{}", letter.incident.id(),
                 NameOf(letter.target.kind), std::string(status.message()),
                 give_up ? ", given up" : ", tried again later");
    letter.said = true;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (status.ok()) {
    ++sent_;
  } else if (give_up) {
    ++failed_;
  } else {
    letter.next_try_ns = absl::GetCurrentTimeNanos() + letter.pause_ns;
    letter.pause_ns = std::min(letter.pause_ns * 2, options_.longest_pause_ns);
    letters_.push_back(std::move(letter));
  }
}

uint64_t AlertSender::sent() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return sent_;
}

uint64_t AlertSender::failed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failed_;
}

}  // namespace rollcall

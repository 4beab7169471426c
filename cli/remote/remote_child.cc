// SPDX-License-Identifier: Apache-2.0
#include "cli/remote/remote_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clean_text.h"
#include "base/cut_text.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "base/unique_fd.h"
#include "cli/remote/look_frame.h"
#include "cli/remote/look_stream.h"

namespace rollcall {
namespace {

constexpr size_t kMostOutput = 64 << 20;
constexpr size_t kMostErrorText = 16 << 10;
constexpr size_t kShownError = 300;
constexpr int kMostReadsAtOnce = 16;
constexpr int64_t kToCleanUpNs = 2 * kSecond;  // for the end of a command whose look has arrived
constexpr int64_t kAfterTermNs = kSecond / 2;
constexpr int64_t kMsInNs = 1'000'000;

// A process with pipes to its three files, in this process's group: a key at the terminal reaches
// it.
class Child {
 public:
  explicit Child(const Command& command) { Start(command); }
  ~Child() { End(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int failed() const { return failed_; }  // an errno; 0 if it has been started
  UniqueFd in, out, err;                  // nonblocking; `in` is a socket

  // Waits for its end until then. True if it has ended by itself, with 0.
  bool HasEndedWell(int64_t deadline_ns) {
    while (!IsOver() && MonotonicNs() < deadline_ns)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return pid_ == 0 && WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
  }

  // "ended with 255", "was killed by signal 9"; "" while it runs.
  std::string EndInWords() const {
    if (pid_ != 0) return "";
    return WIFSIGNALED(status_) ? absl::StrCat("was killed by signal ", WTERMSIG(status_))
                                : absl::StrCat("ended with ", WEXITSTATUS(status_));
  }

 private:
  void Start(const Command& command) {
    int input[2], output[2], errors[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input) != 0) {
      failed_ = errno;
      return;
    }
    in = UniqueFd(input[0]);
    const UniqueFd child_in(input[1]);
    if (pipe2(output, O_CLOEXEC) != 0) {
      failed_ = errno;
      return;
    }
    out = UniqueFd(output[0]);
    const UniqueFd child_out(output[1]);
    if (pipe2(errors, O_CLOEXEC) != 0) {
      failed_ = errno;
      return;
    }
    err = UniqueFd(errors[0]);
    const UniqueFd child_err(errors[1]);
    for (const UniqueFd* fd : {&in, &out, &err}) fcntl(fd->get(), F_SETFL, O_NONBLOCK);
    Spawn(command, child_in.get(), child_out.get(), child_err.get());
  }

  void Spawn(const Command& command, int child_in, int child_out, int child_err) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, child_in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, child_out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, child_err, STDERR_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::vector<char*> arguments;
    for (const std::string& argument : command)
      arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    failed_ = posix_spawnp(&pid_, arguments[0], &actions, &attributes, arguments.data(), environ);
    if (failed_ != 0) pid_ = 0;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }

  bool IsOver() {
    if (pid_ != 0 && waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = 0;
    return pid_ == 0;
  }

  void End() {
    in = UniqueFd();
    out = UniqueFd();
    err = UniqueFd();
    if (IsOver()) return;
    kill(pid_, SIGTERM);
    HasEndedWell(MonotonicNs() + kAfterTermNs);
    if (IsOver()) return;
    kill(pid_, SIGKILL);
    HasEndedWell(MonotonicNs() + kAfterTermNs);
  }

  pid_t pid_ = 0;
  int status_ = 0;
  int failed_ = 0;
};

// Talks to the child until it closes its stdout, `take` has enough, or time is over.
class Talk {
 public:
  enum class End : uint8_t { kEnough, kClosed, kLate };

  // `take`: what the child has written; false: it is enough.
  Talk(Child* child, std::function<bool(absl::string_view)> take)
      : child_(child), take_(std::move(take)) {}

  // What goes to its stdin, after which that is closed. Without it, stdin stays open and empty.
  void Send(absl::string_view bytes) {
    to_send_ = bytes;
    is_sending_ = true;
  }

  End Go(int64_t deadline_ns) {
    for (;;) {
      const int64_t left_ms = (deadline_ns - MonotonicNs() + kMsInNs - 1) / kMsInNs;
      if (left_ms <= 0) return End::kLate;
      pollfd files[] = {{child_->out.get(), POLLIN, 0},
                        {child_->err.get(), POLLIN, 0},
                        {is_sending_ ? child_->in.get() : -1, POLLOUT, 0}};
      if (poll(files, 3, static_cast<int>(std::min<int64_t>(left_ms, 60'000))) < 0 &&
          errno != EINTR) {
        return End::kClosed;
      }
      if (files[2].revents != 0) SendSome();
      if (files[1].revents != 0) ReadErrors();
      if (files[0].revents != 0) {
        const End end = ReadSome();
        if (end != End::kLate) return end;
      }
    }
  }

  // Returns the last line of its stderr, for people.
  std::string LastError() {
    ReadErrors();
    std::string last;
    for (const absl::string_view line : absl::StrSplit(errors_, '\n')) {
      const absl::string_view text = absl::StripAsciiWhitespace(line);
      if (!text.empty()) last = std::string(text);
    }
    return CutText(CleanText(last), kShownError, "...");
  }

 private:
  void SendSome() {
    const ssize_t sent =
        send(child_->in.get(), to_send_.data(), to_send_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) to_send_.remove_prefix(static_cast<size_t>(sent));
    const bool is_broken = sent < 0 && errno != EAGAIN && errno != EINTR;
    if (!is_broken && !to_send_.empty()) return;
    child_->in = UniqueFd();
    is_sending_ = false;
  }

  // The newest part, a limited number of reads; a closed file is not looked at again.
  void ReadErrors() {
    char buffer[4096];
    for (int reads = 0; reads < kMostReadsAtOnce; ++reads) {
      const ssize_t count = read(child_->err.get(), buffer, sizeof(buffer));
      if (count <= 0) {
        if (count == 0 || (errno != EAGAIN && errno != EINTR)) child_->err = UniqueFd();
        return;
      }
      errors_.append(buffer, static_cast<size_t>(count));
      if (errors_.size() > 2 * kMostErrorText) errors_.erase(0, errors_.size() - kMostErrorText);
      if (count < static_cast<ssize_t>(sizeof(buffer))) return;
    }
  }

  // kLate: go on.
  End ReadSome() {
    char buffer[64 << 10];
    const ssize_t count = read(child_->out.get(), buffer, sizeof(buffer));
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return End::kLate;
    if (count <= 0) return End::kClosed;
    return take_({buffer, static_cast<size_t>(count)}) ? End::kLate : End::kEnough;
  }

  Child* const child_;
  const std::function<bool(absl::string_view)> take_;
  absl::string_view to_send_;
  bool is_sending_ = false;
  std::string errors_;
};

std::string NotStarted(const Command& command, int error) {
  return absl::StrCat("cannot start ", command.front(), ": ", strerror(error));
}

// Returns why a command has closed its stdout too early.
std::string WhyEnded(const Command& command, Child* child, Talk* talk, int64_t deadline_ns) {
  child->HasEndedWell(std::min(deadline_ns, MonotonicNs() + kToCleanUpNs));
  const std::string said = talk->LastError();
  const std::string end = child->EndInWords();
  if (!said.empty()) return said;
  return absl::StrCat(command.front(), " ", end.empty() ? "closed its output" : end);
}

std::string Late(Talk* talk) {
  const std::string said = talk->LastError();
  return absl::StrCat("it did not answer in time", said.empty() ? "" : ": ", said);
}

void TakeParsed(const std::string& bytes, ByteBudget* budget, RemoteLook* result) {
  absl::StatusOr<v1::HostLook> look = ParseLook(bytes, budget);
  if (look.ok()) {
    result->look = *std::move(look);
  } else {
    result->error = std::string(look.status().message());
  }
}

}  // namespace

RemoteLook TakeRemoteLook(const Command& command, const std::string& token,
                          absl::string_view program, int64_t deadline_ns, ByteBudget* budget) {
  RemoteLook result;
  Child child(command);
  if (child.failed() != 0) {
    result.error = NotStarted(command, child.failed());
    return result;
  }
  LookStream stream(token, budget);
  bool has_sent = false;
  Talk talk(&child, [&](absl::string_view bytes) {
    const LookStream::State state = stream.Add(bytes);
    if (state == LookStream::State::kNeedsProgram && !std::exchange(has_sent, true))
      talk.Send(program);
    return state == LookStream::State::kWaits || state == LookStream::State::kNeedsProgram;
  });
  const Talk::End end = talk.Go(deadline_ns);
  if (stream.state() == LookStream::State::kDone) {
    result.arrived_ns = MonotonicNs();
    TakeParsed(stream.look(), budget, &result);
    child.in = UniqueFd();
    // It removes what it was sent.
    child.HasEndedWell(std::min(deadline_ns, MonotonicNs() + kToCleanUpNs));
  } else if (stream.state() == LookStream::State::kFailed) {
    result.error = stream.error();
  } else if (end == Talk::End::kLate) {
    result.error = Late(&talk);
  } else {
    result.error = WhyEnded(command, &child, &talk, deadline_ns);
  }
  return result;
}

CommandOutput RunToEnd(const Command& command, int64_t deadline_ns) {
  CommandOutput result;
  Child child(command);
  if (child.failed() != 0) {
    result.error = NotStarted(command, child.failed());
    return result;
  }
  child.in = UniqueFd();
  Talk talk(&child, [&result](absl::string_view bytes) {
    result.out.append(bytes.data(), bytes.size());
    return result.out.size() <= kMostOutput;
  });
  switch (talk.Go(deadline_ns)) {
    case Talk::End::kLate:
      result.error = Late(&talk);
      break;
    case Talk::End::kEnough:
      result.error = absl::StrCat(command.front(), " printed too much");
      break;
    case Talk::End::kClosed:
      if (!child.HasEndedWell(std::min(deadline_ns, MonotonicNs() + kToCleanUpNs)))
        result.error = WhyEnded(command, &child, &talk, deadline_ns);
      break;
  }
  return result;
}

}  // namespace rollcall

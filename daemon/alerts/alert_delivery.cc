// SPDX-License-Identifier: Apache-2.0
#include "daemon/alerts/alert_delivery.h"

#include <fcntl.h>
#include <httplib.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "base/url_parts.h"
#include "security/http_watchdog.h"
#include "security/webhook_signature.h"

extern char** environ;

namespace rollcall {
namespace {

constexpr std::chrono::milliseconds kPollInterval{10};
constexpr uint64_t kMostAnswerBytes = 4 << 20;  // the daemon reads the status only
constexpr size_t kPipeHolds = 60'000;           // bytes that a pipe holds without a reader

std::string ForHeader(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c > ' ' && c < 0x7f && c != '%') {
      result += c;
    } else {
      absl::StrAppend(&result, "%", absl::Hex(static_cast<uint8_t>(c), absl::kZeroPad2));
    }
  }
  return result;
}

absl::Status ToStatus(const httplib::Result& result, int done_before) {
  if (!result) return absl::UnavailableError(httplib::to_string(result.error()));
  if (done_before != 0 && result->status == done_before) return absl::OkStatus();
  if (result->status >= 200 && result->status < 300) return absl::OkStatus();
  const std::string problem = absl::StrCat("it returned status ", result->status);
  // Retrying a refused alert does not help, except after 408 (timeout) and 429 (too many requests).
  const bool refused = result->status >= 400 && result->status < 500 && result->status != 429 &&
                       result->status != 408;
  return refused ? absl::InvalidArgumentError(problem) : absl::UnavailableError(problem);
}

// Starts the command in a process group of its own, so that the daemon can kill the whole group.
// Returns -1 if it cannot start the command.
pid_t Spawn(const std::string& command, int input) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  // The daemon ignores SIGPIPE. In a pipeline of the command SIGPIPE ends the writers.
  sigset_t usual;
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::string shell = "/bin/sh", option = "-c", text = command;
  char* arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  pid_t child = -1;
  const int failed = posix_spawn(&child, "/bin/sh", &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return failed == 0 ? child : -1;
}

absl::Status WaitForCommand(pid_t child, Cancellation* cancellation) {
  const auto deadline = std::chrono::steady_clock::now() + kDeliverWithin;
  int status = 0;
  bool is_cancelled = false;
  while (!is_cancelled && std::chrono::steady_clock::now() < deadline) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) {
      return WIFEXITED(status) && WEXITSTATUS(status) == 0
                 ? absl::OkStatus()
                 : absl::UnavailableError(absl::StrCat("the command failed, status ", status));
    }
    // Another thread has collected the child: `rollcall run` collects all children.
    if (ended < 0) return absl::OkStatus();
    is_cancelled = cancellation->WaitFor(kPollInterval);
  }
  kill(-child, SIGKILL);
  waitpid(child, &status, 0);
  return absl::UnavailableError(
      is_cancelled ? "the daemon stopped and killed the command"
                   : absl::StrCat("the command ran longer than ", kDeliverWithin.count(), " s"));
}

// The headers of https://www.standardwebhooks.com, for receivers that verify the sender.
void Sign(const std::string& signing_key, const std::string& id, const std::string& body,
          httplib::Headers* headers) {
  const int64_t now_s = time(nullptr);
  headers->emplace("webhook-id", id);
  headers->emplace("webhook-timestamp", absl::StrCat(now_s));
  headers->emplace("webhook-signature", WebhookSignature(signing_key, id, now_s, body));
}

absl::Status SendRequest(const AlertRequest& request, const std::string& key,
                         const std::string& signing_key, std::chrono::milliseconds within,
                         Cancellation* cancellation) {
  const auto [origin, path] = SplitUrl(request.url);
  if (!absl::StartsWith(origin, "http://") && !absl::StartsWith(origin, "https://")) {
    return absl::InvalidArgumentError("its URL does not begin with http:// or https://");
  }
  httplib::Client client(origin);
  if (!request.ca_file.empty()) client.set_ca_cert_path(request.ca_file.c_str());
  client.set_decompress(false);  // the answer is not read, and a kilobyte may stand for a gigabyte
  client.set_connection_timeout(within);
  client.set_read_timeout(within);
  client.set_write_timeout(within);
  const HttpWatchdog watchdog(&client, {kMostAnswerBytes, within}, [cancellation] {
    return cancellation->WaitFor(std::chrono::milliseconds(0));
  });
  httplib::Headers headers = {{"Idempotency-Key", ForHeader(key)}};
  if (!request.authorization.empty()) headers.emplace("Authorization", request.authorization);
  if (!signing_key.empty()) Sign(signing_key, ForHeader(key), request.body, &headers);
  return ToStatus(std::string(request.method) == "PUT"
                      ? client.Put(path, headers, request.body, request.content_type)
                      : client.Post(path, headers, request.body, request.content_type),
                  request.done_before);
}

}  // namespace

absl::Status SendAlertRequests(const std::vector<AlertRequest>& requests, const std::string& key,
                               const std::string& signing_key, Cancellation* cancellation) {
  const auto deadline = std::chrono::steady_clock::now() + kDeliverWithin;
  for (const AlertRequest& request : requests) {
    const auto within = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (within.count() <= 0) return absl::UnavailableError("it answered too slowly");
    const absl::Status status = SendRequest(request, key, signing_key, within, cancellation);
    const bool is_settled =
        status.ok() || (request.may_be_refused && absl::IsInvalidArgument(status));
    if (!is_settled) return status;
  }
  return absl::OkStatus();
}

absl::Status RunAlertCommand(const std::string& command, const std::string& body,
                             uint64_t open_files, Cancellation* cancellation) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::UnavailableError("cannot create a pipe");
  const std::string limited =
      open_files == 0 ? command : absl::StrCat("ulimit -S -n ", open_files, "\n", command);
  UniqueFd from(ends[0]), to(ends[1]);
  const pid_t child = Spawn(limited, from.get());
  from = UniqueFd();
  // A body of some kilobytes fits the pipe. Every program that runs a daemon ignores SIGPIPE.
  if (child > 0 && write(to.get(), body.data(), std::min(body.size(), kPipeHolds)) < 0) {
    // A command may ignore its input.
  }
  to = UniqueFd();
  if (child < 0) return absl::UnavailableError("cannot start the command");
  return WaitForCommand(child, cancellation);
}

}  // namespace rollcall

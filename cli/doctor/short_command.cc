// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/short_command.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/unique_fd.h"

namespace rollcall::doctor {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMostBytes = 64 << 10;
constexpr std::chrono::milliseconds kPause{10};
constexpr std::chrono::milliseconds kAfterKill{500};

struct Pipe {
  UniqueFd reader, writer;
};

bool Open(Pipe* one) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  one->reader = UniqueFd(ends[0]);
  one->writer = UniqueFd(ends[1]);
  return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

pid_t Spawn(const std::vector<std::string>& command, const std::vector<std::string>& environment,
            const Pipe& out, const Pipe& err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.writer.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.writer.get(), STDERR_FILENO);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, command.front().c_str(), &actions, nullptr,
                                Pointers(command).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? pid : -1;
}

// Reads what is there. What exceeds the limit is read and dropped, so that the program goes on.
void Drain(const UniqueFd& reader, std::string* text) {
  char buffer[4096];
  ssize_t count;
  while ((count = read(reader.get(), buffer, sizeof(buffer))) > 0) {
    const size_t room = kMostBytes - std::min(text->size(), kMostBytes);
    text->append(buffer, std::min(room, static_cast<size_t>(count)));
  }
}

// False if it has not ended by `deadline`.
bool WaitUntil(pid_t pid, Clock::time_point deadline, const Pipe& out, const Pipe& err, int* status,
               ShortResult* result) {
  for (;;) {
    const pid_t ended = waitpid(pid, status, WNOHANG);
    Drain(out.reader, &result->out);
    Drain(err.reader, &result->err);
    if (ended == pid) return true;
    if (ended < 0 || Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

ShortResult RunShortly(const std::vector<std::string>& command,
                       const std::vector<std::string>& environment,
                       std::chrono::milliseconds patience) {
  ShortResult result;
  Pipe out, err;
  if (!Open(&out) || !Open(&err)) return result;
  const pid_t pid = Spawn(command, environment, out, err);
  if (pid < 0) return result;
  out.writer = UniqueFd();
  err.writer = UniqueFd();
  int status = 0;
  if (WaitUntil(pid, Clock::now() + patience, out, err, &status, &result)) {
    const bool is_good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    result.attempt = is_good ? Attempt::kWorked : Attempt::kFailed;
    return result;
  }
  result.attempt = Attempt::kNoAnswer;
  kill(pid, SIGKILL);
  // A process that the kernel does not let go is left behind.
  WaitUntil(pid, Clock::now() + kAfterKill, out, err, &status, &result);
  return result;
}

}  // namespace rollcall::doctor

// SPDX-License-Identifier: Apache-2.0
#include "agent/host_facts/probe_runner.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/processes/pidfd.h"
#include "agent/processes/spawn.h"
#include "base/monotonic_clock.h"

namespace rollcall {
namespace {

constexpr size_t kMostOutput = size_t{256} << 10;
constexpr int64_t kNsOfMs = 1'000'000;

}  // namespace

struct ProbeRunner::Running {
  const ProbeCommand* command = nullptr;
  ProbeResult* result = nullptr;
  pid_t pid = 0;
  UniqueFd pidfd, output;
  std::string text;
  bool is_over = true;

  void Start() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return Fail(errno);
    output = UniqueFd(ends[0]);
    const UniqueFd input(ends[1]);
    const int failure =
        SpawnApart(command->arguments[0], command->arguments, {-1, input.get()}, &pid);
    if (failure != 0) return Fail(failure);
    const auto handle = OpenPidfd(pid);
    if (handle.ok()) pidfd = UniqueFd(*handle);
    fcntl(output.get(), F_SETFL, O_NONBLOCK);
    is_over = false;
  }

  void Fail(int error) {
    result->outcome = ProbeOutcome::kFailed;
    result->note =
        absl::StrCat("cannot start ", command->arguments[0], ": ", SpawnErrorInWords(error));
  }

  // What it has written so far. Sets is_over at the end of it.
  void ReadOutput() {
    char buffer[16384];
    while (true) {
      const ssize_t size = read(output.get(), buffer, sizeof(buffer));
      if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (size <= 0 || text.size() > kMostOutput) break;
      text.append(buffer, static_cast<size_t>(size));
    }
    is_over = true;
  }
};

ProbeRunner::~ProbeRunner() = default;

size_t ProbeRunner::CountStuck() {
  for (auto at = stuck_.begin(); at != stuck_.end();) {
    at = CollectChild(at->second.pid) ? stuck_.erase(at) : std::next(at);
  }
  return stuck_.size();
}

bool ProbeRunner::IsStuck(const std::string& key) {
  const size_t stuck = CountStuck();
  return stuck_.count(key) != 0 || stuck >= kMostStuck;
}

void ProbeRunner::Abandon(Running* running) {
  KillChild(running->pid, running->pidfd);
  stuck_[running->command->key] = {running->pid, std::move(running->pidfd)};
}

std::vector<ProbeResult> ProbeRunner::Run(const std::vector<ProbeCommand>& commands,
                                          int64_t deadline_ns) {
  std::vector<ProbeResult> results(commands.size());
  for (size_t first = 0; first < commands.size(); first += kMostAtOnce) {
    RunGroup(commands, first, std::min(first + kMostAtOnce, commands.size()), deadline_ns,
             &results);
  }
  return results;
}

void ProbeRunner::RunGroup(const std::vector<ProbeCommand>& commands, size_t first, size_t end,
                           int64_t deadline_ns, std::vector<ProbeResult>* results) {
  std::vector<Running> group(end - first);
  for (size_t i = first; i < end; ++i) {
    Running& running = group[i - first];
    running.command = &commands[i];
    running.result = &(*results)[i];
    if (IsStuck(commands[i].key)) {
      running.result->outcome = ProbeOutcome::kLate;
      running.result->note = "an earlier look has not returned";
    } else {
      running.Start();
    }
  }
  const int64_t until_ns = MonotonicNs() + deadline_ns;
  while (true) {
    std::vector<pollfd> waits;
    std::vector<Running*> waiting;
    for (Running& running : group) {
      if (running.is_over) continue;
      waits.push_back({running.output.get(), POLLIN, 0});
      waiting.push_back(&running);
    }
    const int64_t left_ms = (until_ns - MonotonicNs() + kNsOfMs - 1) / kNsOfMs;
    if (waits.empty() || left_ms <= 0) break;
    poll(waits.data(), waits.size(), static_cast<int>(left_ms));
    for (size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].revents != 0) waiting[i]->ReadOutput();
    }
  }
  for (Running& running : group) {
    if (running.pid == 0) continue;
    const bool is_late = !running.is_over;
    *running.result = FromLines(running.text);
    if (is_late) {
      running.result->outcome = ProbeOutcome::kLate;
      running.result->note =
          absl::StrCat("no answer within ", deadline_ns / (1000 * kNsOfMs), " s");
    }
    // A probe that has closed its output may still be on its way out.
    if (is_late || !CollectChild(running.pid)) Abandon(&running);
  }
}

}  // namespace rollcall

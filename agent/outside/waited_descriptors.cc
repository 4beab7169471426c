// SPDX-License-Identifier: Apache-2.0
#include "agent/outside/waited_descriptors.h"

#include <poll.h>
#include <sys/syscall.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "agent/processes/proc_files.h"

namespace rollcall {
namespace {

constexpr size_t kSyscallBytes = 256;
constexpr size_t kSetBytes = 128;  // of an fd_set

// What the arguments of a call show of descriptors.
enum class Waits : uint8_t {
  kFirst,  // the first argument is one
  kArray,  // pollfd[], and their number
  kSets,   // their number, and sets for reading and writing
  kMany,   // an epoll descriptor, whose descriptors its fdinfo lists
};

struct WaitingCall {
  int64_t number;
  Waits waits;
};

constexpr WaitingCall kWaitingCalls[] = {
    {SYS_read, Waits::kFirst},        {SYS_readv, Waits::kFirst},   {SYS_recvfrom, Waits::kFirst},
    {SYS_recvmsg, Waits::kFirst},     {SYS_write, Waits::kFirst},   {SYS_writev, Waits::kFirst},
    {SYS_sendto, Waits::kFirst},      {SYS_sendmsg, Waits::kFirst}, {SYS_connect, Waits::kFirst},
    {SYS_ppoll, Waits::kArray},       {SYS_pselect6, Waits::kSets}, {SYS_epoll_pwait, Waits::kMany},
#ifdef SYS_epoll_pwait2
    {SYS_epoll_pwait2, Waits::kMany},
#endif
#ifdef SYS_poll
    {SYS_poll, Waits::kArray},
#endif
#ifdef SYS_select
    {SYS_select, Waits::kSets},
#endif
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, Waits::kMany},
#endif
};

// After a stop the kernel goes on in a poll() with a timeout by another call, whose arguments are
// still those of poll(). It does so in sleeps and futexes, too.
bool GoesOnInPoll(const std::string& proc_root, pid_t pid, pid_t tid, const SystemCall& call) {
  if (call.number != SYS_restart_syscall) return false;
  const std::string file = ProcPath(proc_root, pid, absl::StrCat("task/", tid, "/wchan"));
  return absl::StrContains(ReadProcFile(file, kSyscallBytes).value_or(""), "poll");
}

std::vector<int> ReadArray(const SystemCall& call, ProcessMemory* memory) {
  const uint64_t count = std::min<uint64_t>(call.arguments[1], kMostWaitedDescriptors);
  std::vector<pollfd> polled(count);
  if (count == 0 || !memory->Read(call.arguments[0], polled.data(), count * sizeof(pollfd))) {
    return {};
  }
  std::vector<int> found;
  for (const pollfd& one : polled) {
    if (one.fd >= 0) found.push_back(one.fd);
  }
  return found;
}

std::vector<int> ReadSets(const SystemCall& call, ProcessMemory* memory) {
  std::vector<int> found;
  const uint64_t most = std::min<uint64_t>(call.arguments[0], kSetBytes * 8);
  for (const uint64_t address : {call.arguments[1], call.arguments[2]}) {
    uint8_t set[kSetBytes] = {};
    if (address == 0 || !memory->Read(address, set, (most + 7) / 8)) continue;
    for (uint64_t fd = 0; fd < most && found.size() < kMostWaitedDescriptors; ++fd) {
      if ((set[fd / 8] >> (fd % 8) & 1) != 0) found.push_back(static_cast<int>(fd));
    }
  }
  return found;
}

}  // namespace

std::optional<SystemCall> ParseSystemCall(const std::string& text) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  SystemCall call;
  if (words.size() <= call.arguments.size() || !absl::SimpleAtoi(words[0], &call.number) ||
      call.number < 0) {
    return std::nullopt;
  }
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (!absl::SimpleHexAtoi(words[i + 1], &call.arguments[i])) return std::nullopt;
  }
  return call;
}

std::optional<SystemCall> ReadSystemCall(const std::string& proc_root, pid_t pid, pid_t tid) {
  const std::string file = ProcPath(proc_root, pid, absl::StrCat("task/", tid, "/syscall"));
  return ParseSystemCall(ReadProcFile(file, kSyscallBytes).value_or(""));
}

std::vector<int> FindWaitedDescriptors(const std::string& proc_root, pid_t pid, pid_t tid,
                                       ProcessMemory* memory) {
  const std::optional<SystemCall> call = ReadSystemCall(proc_root, pid, tid);
  if (!call.has_value()) return {};
  if (GoesOnInPoll(proc_root, pid, tid, *call)) return ReadArray(*call, memory);
  const auto* known = std::find_if(std::begin(kWaitingCalls), std::end(kWaitingCalls),
                                   [&](const WaitingCall& c) { return c.number == call->number; });
  if (known == std::end(kWaitingCalls)) return {};
  switch (known->waits) {
    case Waits::kFirst:
      return {static_cast<int>(call->arguments[0])};
    case Waits::kArray:
      return ReadArray(*call, memory);
    case Waits::kSets:
      return ReadSets(*call, memory);
    case Waits::kMany:
      return ListWatched(proc_root, pid, static_cast<int>(call->arguments[0]));
  }
  return {};
}

// Lines like "tfd:       7 events: 19 data: ...".
std::vector<int> ListWatched(const std::string& proc_root, pid_t pid, int epoll) {
  const std::string file = ProcPath(proc_root, pid, absl::StrCat("fdinfo/", epoll));
  const std::string text = ReadProcFile(file).value_or("");
  std::vector<int> found;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    int fd = -1;
    if (!absl::ConsumePrefix(&line, "tfd:") || found.size() == kMostWatchedDescriptors) continue;
    line = absl::StripLeadingAsciiWhitespace(line);
    if (absl::SimpleAtoi(line.substr(0, line.find(' ')), &fd)) found.push_back(fd);
  }
  return found;
}

}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/stack_worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "agent/processes/pidfd.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/proc_stat.h"
#include "agent/processes/spawn.h"
#include "agent/stacks/stack_work.h"
#include "agent/stacks/stack_work_main.h"
#include "base/monotonic_clock.h"

namespace rollcall {
namespace {

constexpr int kLookEveryMs = 100;

// A child of this process is in the /proc of this process's own pid namespace.
int64_t CpuNs(pid_t pid) {
  const auto text = ReadProcFile(ProcPath("/proc", pid, "schedstat"), 256);
  int64_t ns = 0;
  if (text.ok() && absl::SimpleAtoi(text->substr(0, text->find(' ')), &ns)) return ns;
  // Some kernels and sandboxes have no schedstat.
  const auto stat = ReadProcStat("/proc", pid);
  return stat.ok() ? static_cast<int64_t>(stat->cpu_ticks) * (1'000'000'000 / sysconf(_SC_CLK_TCK))
                   : 0;
}

bool Waits(pid_t pid) {
  const auto stat = ReadProcStat("/proc", pid);
  return stat.ok() && (stat->state == 'D' || stat->state == 'S');
}

}  // namespace

// Decides whether the child still gets on with one request.
class StackWorker::Watch {
 public:
  Watch(pid_t pid, const StackWorkLimits& limits)
      : pid_(pid),
        limits_(limits),
        begun_ns_(MonotonicNs()),
        moved_ns_(begun_ns_),
        begun_cpu_ns_(CpuNs(pid)),
        cpu_ns_(begun_cpu_ns_) {}

  // kAnswered: it does.
  End Look() {
    const int64_t now_ns = MonotonicNs();
    const int64_t cpu_ns = CpuNs(pid_);
    if (cpu_ns != cpu_ns_ || !Waits(pid_)) moved_ns_ = now_ns;
    cpu_ns_ = cpu_ns;
    if (now_ns - moved_ns_ > limits_.silent_ns) return End::kSilent;
    const bool is_costly =
        cpu_ns - begun_cpu_ns_ > limits_.cpu_ns || now_ns - begun_ns_ > limits_.total_ns;
    return is_costly ? End::kCostly : End::kAnswered;
  }

 private:
  const pid_t pid_;
  const StackWorkLimits& limits_;
  const int64_t begun_ns_;
  int64_t moved_ns_;
  const int64_t begun_cpu_ns_;
  int64_t cpu_ns_;
};

StackWorker::StackWorker(const std::string& programs, const StackWorkLimits& limits)
    : program_((programs.empty() ? OwnProgramFolder() : programs) + "/rollcall-probe"),
      program_fd_(open(program_.c_str(), O_PATH | O_CLOEXEC)),
      limits_(limits) {}

StackWorker::~StackWorker() {
  Stop();
  if (in_use_ != nullptr) munmap(in_use_, sizeof(FileInUse));
}

// Returns why there is no child; empty if there is one.
std::string StackWorker::Start(const Payer& payer) {
  left_.erase(std::remove_if(left_.begin(), left_.end(),
                             [](const Child& child) { return CollectChild(child.pid); }),
              left_.end());
  const auto is_own = [&payer](const Child& child) {
    return !(child.payer < payer) && !(payer < child.payer);
  };
  const auto own = std::count_if(left_.begin(), left_.end(), is_own);
  if (left_.size() >= kMostLeft || static_cast<size_t>(own) >= kMostLeftOfOne) {
    return "file servers do not answer";
  }
  if (!program_fd_.valid()) return absl::StrCat("cannot find ", program_);
  const UniqueFd shared(memfd_create("rollcall-file-in-use", MFD_CLOEXEC));
  int ends[2];
  if (!shared.valid() || ftruncate(shared.get(), sizeof(FileInUse)) != 0 ||
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::StrCat("cannot start ", program_, ": ", strerror(errno));
  }
  socket_ = UniqueFd(ends[0]);
  const UniqueFd theirs(ends[1]);
  if (in_use_ != nullptr) munmap(in_use_, sizeof(FileInUse));
  void* const memory =
      mmap(nullptr, sizeof(FileInUse), PROT_READ | PROT_WRITE, MAP_SHARED, shared.get(), 0);
  in_use_ = memory == MAP_FAILED ? nullptr : static_cast<FileInUse*>(memory);
  // Uses this process's descriptors, because the child closes its own ones first.
  const std::string path = absl::StrCat("/proc/", getpid(), "/fd/", program_fd_.get());
  const int failure = SpawnApart(path, {program_, kStackWorkProbe},
                                 {theirs.get(), theirs.get(), shared.get()}, &child_.pid);
  if (failure != 0) {
    child_.pid = 0;
    return absl::StrCat("cannot start ", program_, ": ", SpawnErrorInWords(failure));
  }
  requests_ = 0;
  const auto handle = OpenPidfd(child_.pid);
  child_.pidfd = handle.ok() ? UniqueFd(*handle) : UniqueFd();
  return "";
}

void StackWorker::Stop() {
  socket_ = UniqueFd();
  if (child_.pid == 0) return;
  KillChild(child_.pid, child_.pidfd);
  left_.push_back(std::exchange(child_, {}));
}

StackWorker::Answer StackWorker::Ask(const std::string& request, const Payer& payer) {
  // A child that has had nothing to do has ended.
  if (child_.pid != 0 && CollectChild(child_.pid)) {
    child_ = {};
    socket_ = UniqueFd();
  }
  Answer answer;
  if (child_.pid == 0) answer.why = Start(payer);
  if (child_.pid == 0) return answer;
  child_.payer = payer;
  answer.was_first = requests_++ == 0;
  if (Exchange(request, &answer)) return answer;
  answer.file = in_use_ == nullptr ? FileId() : in_use_->Get();
  Stop();
  return answer;
}

// False if the child does not get on, as `answer->end` shows.
bool StackWorker::Exchange(const std::string& request, Answer* answer) {
  const uint64_t size = request.size();
  const absl::string_view head(reinterpret_cast<const char*>(&size), sizeof(size));
  const size_t all = head.size() + request.size();
  std::string in;
  size_t sent = 0;
  uint64_t wanted = sizeof(uint64_t);
  Watch watch(child_.pid, limits_);
  int64_t looked_ns = MonotonicNs();
  while (in.size() < wanted) {
    pollfd ready = {socket_.get(), static_cast<short>(POLLIN | (sent < all ? POLLOUT : 0)), 0};
    poll(&ready, 1, kLookEveryMs);
    if (sent < all && (ready.revents & POLLOUT) != 0) {
      const absl::string_view left = sent < head.size()
                                         ? head.substr(sent)
                                         : absl::string_view(request).substr(sent - head.size());
      const ssize_t count =
          send(socket_.get(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count > 0) sent += static_cast<size_t>(count);
    }
    if ((ready.revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      char buffer[65536];
      const ssize_t count = recv(socket_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
      if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
        answer->end = End::kLost;
        return false;
      }
      if (count > 0) in.append(buffer, static_cast<size_t>(count));
    }
    if (in.size() >= sizeof(uint64_t) && wanted == sizeof(uint64_t)) {
      std::memcpy(&wanted, in.data(), sizeof(wanted));
      if (wanted > kMostStackAnswerBytes) {
        answer->end = End::kLost;
        return false;
      }
      wanted += sizeof(uint64_t);
    }
    if (MonotonicNs() - looked_ns < kLookEveryMs * int64_t{1'000'000}) continue;
    looked_ns = MonotonicNs();
    answer->end = watch.Look();
    if (answer->end != End::kAnswered) return false;
  }
  answer->end = End::kAnswered;
  answer->bytes = in.substr(sizeof(uint64_t));
  return true;
}

}  // namespace rollcall

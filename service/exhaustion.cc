// SPDX-License-Identifier: Apache-2.0
#include "service/exhaustion.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <new>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
// Suffices for an orderly end, which frees more than it takes.
constexpr size_t kReserveBytes = 32 * kMiB;
// A library that has ended the process near a limit has met it.
constexpr uint64_t kNearLimitBytes = 64 * kMiB;
constexpr unsigned kEndWithinSeconds = 15;
constexpr uint64_t kUsualStackBytes = 8 * kMiB;

const char* program_name = "";
std::atomic<void*> reserve{nullptr};
std::atomic<bool> is_exhausted{false};

uint64_t SoftLimit(int resource) {
  rlimit limit = {};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return UINT64_MAX;
  return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

// One line, without memory: this runs when memory is exhausted, and in signal handlers.
class Line {
 public:
  Line& Add(const char* text) {
    const size_t length = std::min(strlen(text), sizeof(text_) - 1 - size_);
    memcpy(text_ + size_, text, length);
    size_ += length;
    return *this;
  }
  Line& Add(uint64_t number) {
    char digits[21] = {};
    size_t at = sizeof(digits) - 1;
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    return Add(digits + at);
  }
  void Write() {
    text_[size_++] = '\n';
    (void)!write(STDERR_FILENO, text_, size_);
  }

 private:
  char text_[512];
  size_t size_ = 0;
};

void SayNoMemory() {
  Line line;
  line.Add(program_name).Add(": exiting: the system gives it no more memory");
  const uint64_t limit = SoftLimit(RLIMIT_AS);
  if (limit != UINT64_MAX) {
    line.Add("; the limit of its address space is ").Add(limit / kMiB);
    line.Add(" MiB: raise it, ulimit -v, or LimitAS= of its systemd unit");
  } else {
    line.Add(": look for what uses it up, and at vm.overcommit_memory");
  }
  line.Write();
}

void SayNoThread() {
  Line line;
  line.Add(program_name).Add(": exiting: the system gives it no more threads");
  const uint64_t memory = SoftLimit(RLIMIT_AS), count = SoftLimit(RLIMIT_NPROC);
  line.Add("; look at");
  if (memory != UINT64_MAX) line.Add(" ulimit -v (").Add(memory / 1024).Add(" KiB),");
  if (count != UINT64_MAX) line.Add(" ulimit -u (").Add(count).Add("),");
  line.Add(" TasksMax= of its systemd unit, and pids.max of its control group").Write();
}

void SayNoDescriptor() {
  Line line;
  line.Add(program_name).Add(": exiting: it has no more file descriptors; the limit is ");
  line.Add(SoftLimit(RLIMIT_NOFILE));
  line.Add(": raise it, ulimit -n, or LimitNOFILE= of its systemd unit").Write();
}

bool HasNoDescriptor() {
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == EMFILE || errno == ENFILE;
  close(fd);
  return false;
}

// Whether this process, by this limit or by the system's, gets no more memory.
bool HasNoMemory() {
  void* more = mmap(nullptr, kNearLimitBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (more == MAP_FAILED) return true;
  munmap(more, kNearLimitBytes);
  return false;
}

[[noreturn]] void EndAtOnce() { _exit(kOutOfResources); }

// Others that find no memory meanwhile try again until the pointer is gone.
void ReleaseReserve() {
  static std::atomic<bool> is_releasing{false};
  void* held = reserve.load();
  if (held == nullptr || is_releasing.exchange(true)) return;
  munmap(held, kReserveBytes);
  reserve = nullptr;
}

// Called by operator new before it throws. When it returns, operator new tries again.
void OnNoMemory() {
  if (is_exhausted.exchange(true)) {
    // Another thread has just released the reserve, or it was not enough.
    if (reserve.load() == nullptr) throw std::bad_alloc();
    return;
  }
  SayNoMemory();
  ReleaseReserve();
  alarm(kEndWithinSeconds);  // if the end needs more than there is
  kill(getpid(), SIGTERM);
}

[[noreturn]] void OnTerminate() {
  try {
    const std::exception_ptr why = std::current_exception();
    if (why != nullptr) std::rethrow_exception(why);
  } catch (const std::bad_alloc&) {
    if (!is_exhausted.exchange(true)) SayNoMemory();
    EndAtOnce();
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      SayNoThread();
      EndAtOnce();
    }
    Line().Add(program_name).Add(": ").Add(error.what()).Write();
  } catch (const std::exception& error) {
    Line().Add(program_name).Add(": ").Add(error.what()).Write();
  } catch (...) {
  }
  abort();
}

// Libraries in C, and gRPC's core, end the process themselves, or use the memory that they did not
// get.
void OnFault(int signal_number) {
  if (HasNoDescriptor()) {
    SayNoDescriptor();
    EndAtOnce();
  }
  if (is_exhausted.load()) EndAtOnce();
  ReleaseReserve();
  if (HasNoMemory()) {
    SayNoMemory();
    EndAtOnce();
  }
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void OnAlarm(int) { EndAtOnce(); }

void Handle(int signal_number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigaction(signal_number, &action, nullptr);
}

}  // namespace

ResourceLimits LimitsOfThisProcess() {
  ResourceLimits limits;
  limits.address_space = SoftLimit(RLIMIT_AS);
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max != RLIM_INFINITY) {
    limits.descriptors = files.rlim_max;  // RaiseDescriptorLimit() takes all of it
  }
  const uint64_t stack = SoftLimit(RLIMIT_STACK);
  limits.stack_bytes = stack == UINT64_MAX ? kUsualStackBytes : stack;
  // No pool of threads is larger.
  limits.cores = std::clamp(std::thread::hardware_concurrency(), 1U, 64U);
  return limits;
}

absl::Status CheckLimits(const std::string& program, const ResourceNeeds& needs,
                         const ResourceLimits& limits) {
  const uint64_t threads = needs.threads + limits.cores;
  const uint64_t memory = needs.memory_bytes + threads * limits.stack_bytes;
  if (limits.address_space < memory) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot start: the limit of its address space is ", limits.address_space / kMiB,
        " MiB, and ", program, " needs ", (memory + kMiB - 1) / kMiB,
        " MiB here, most of it for the stacks of ", threads,
        " threads\n  raise it:  ulimit -v unlimited    (LimitAS= of its systemd unit)"));
  }
  if (limits.descriptors < needs.descriptors) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot start: it may open ", limits.descriptors, " files, and ", program, " needs ",
        needs.descriptors,
        " at least\n  raise the limit:  ulimit -n 1024    (LimitNOFILE= of its systemd "
        "unit)"));
  }
  return absl::OkStatus();
}

void EndInOrderWhenExhausted(const char* program) {
  program_name = program;
  void* held =
      mmap(nullptr, kReserveBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (held != MAP_FAILED) reserve = held;
  std::set_new_handler(OnNoMemory);
  std::set_terminate(OnTerminate);
  Handle(SIGABRT, OnFault);
  Handle(SIGSEGV, OnFault);
  Handle(SIGALRM, OnAlarm);
}

int ExitCodeOfService() { return is_exhausted.load() ? kOutOfResources : 0; }

}  // namespace rollcall

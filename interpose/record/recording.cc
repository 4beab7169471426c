// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/recording.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/keep_cancel.h"
#include "interpose/keep_errno.h"
#include "interpose/python/call_sites.h"
#include "interpose/python/shapes.h"
#include "interpose/record/annotations.h"
#include "interpose/record/bus_guard.h"
#include "interpose/record/creations.h"
#include "interpose/record/group_lists.h"
#include "interpose/record/handle_table.h"
#include "interpose/record/network_states.h"
#include "interpose/record/segment_header.h"
#include "interpose/record/stack_signals.h"
#include "interpose/recorder.h"
#include "interpose/segment_file.h"
#include "interpose/thread_state.h"

namespace rollcall {
namespace {

using segment::BlockedEntry;
using segment::SegmentHeader;

// How long a thread waits for another thread to make the segment, times 100 us.
constexpr int kStartTries = 500;

std::atomic<int> start_state{0};  // 0 not tried, 1 in progress, 2 done, 3 failed

// Keeps the block: if the fork came from inside a call, the call writes there once more. By then
// that memory belongs to the child.
void ForgetComm(LocalComm* comm) { comm->handle.store(nullptr, std::memory_order_relaxed); }

// A child of fork shares the parent's mapping. It must not write there, nor hold the parent's life
// lock. The child starts recording anew at its own first NCCL call. It has one thread at this
// point.
void ForgetParent() {
  const KeepErrno keep_errno;
  RemoveStackSignals();
  RemoveBusGuard();
  StopCallSites();
  ForgetShapes();
  ForgetNetworkRoom();
  recorder.header.store(nullptr);
  start_state.store(0, std::memory_order_release);
  ForEachComm(&ForgetComm);
  ForgetHandles();
  ForgetCreations();
  ForgetThread();
  ForgetGroupLists();
  ForgetSegmentFile(this_thread.epoch_before_fork);
}

void BeforeFork() { this_thread.epoch_before_fork = SegmentFileEpoch(); }

// Weak: musl lacks it, and with musl the library records nothing.
extern "C" __attribute__((weak)) int __register_atfork(void (*)(), void (*)(), void (*)(), void*);
extern "C" void* __dso_handle;

// A program can forbid itself to read the CPU's counter, which the C library's clocks read too.
bool MayReadCounter() {
  int answer = PR_TSC_ENABLE;
  if (syscall(SYS_prctl, PR_GET_TSC, &answer, 0, 0, 0) != 0) return true;
  if (answer != PR_TSC_ENABLE) ReportNotRecording("the program forbids", "the CPU's counter");
  return answer == PR_TSC_ENABLE;
}

bool MakeSegment() {
  const uint64_t start_time = OwnStartTime();
  const SegmentFile file = MakeSegmentFile(start_time);
  if (file.memory == nullptr) return false;
  auto* header = static_cast<SegmentHeader*>(file.memory);
  recorder.blocked =
      reinterpret_cast<BlockedEntry*>(static_cast<char*>(file.memory) + segment::kBlockedOffset);
  recorder.clock = ChooseClock();
  FillHeader(header, start_time);
  header->pid_namespace = file.pid_namespace;
  header->life_lock.store(file.life_lock ? 1 : 0, std::memory_order_relaxed);
  header->magic.store(segment::kMagic, std::memory_order_release);
  PrepareStackSignals(SegmentPath());
  recorder.mapping.store(header, std::memory_order_release);
  recorder.header.store(header, std::memory_order_release);
  return true;
}

}  // namespace

bool StartRecording() {
  if (Recording()) return true;
  const KeepErrno keep_errno;
  const KeepCancel keep_cancel;
  int state = 0;
  if (!start_state.compare_exchange_strong(state, 1)) {
    // Programs with a thread for each device come here at once, and each creates a communicator
    // that must be recorded. The wait is bounded, and only calls off the hot path come here.
    for (int i = 0; i < kStartTries && start_state.load(std::memory_order_acquire) == 1; ++i) {
      const struct timespec pause = {0, 100000};
      syscall(SYS_nanosleep, &pause, nullptr);
    }
    // A signal handler may have jumped out of the thread that made the segment. Wait no more.
    int under_way = 1;
    start_state.compare_exchange_strong(under_way, 3);
    return Recording();
  }
  recorder.options = ReadLibraryOptions();
  static bool registered = false;
  if (!registered) {
    registered = &__register_atfork != nullptr &&
                 __register_atfork(&BeforeFork, nullptr, &ForgetParent, __dso_handle) == 0;
  }
  LearnThreadIds();
  recorder.comms_claimed.store(0, std::memory_order_relaxed);
  // Without the handler a forked child would write to its parent's segment.
  const bool made = recorder.options.enabled && registered && !AnotherCopyIsFirst() &&
                    MayReadCounter() && MakeSegment();
  start_state.store(made ? 2 : 3, std::memory_order_release);
  return made;
}

void StopRecording(const char* why) {
  SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header == nullptr || !recorder.header.compare_exchange_strong(header, nullptr)) return;
  GiveUpSegmentFile(header, why);
}

}  // namespace rollcall

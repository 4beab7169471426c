// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/segment_header.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interpose/copy_text.h"
#include "interpose/environment.h"
#include "interpose/pod_environment.h"
#include "interpose/record/annotations.h"
#include "interpose/recorder.h"

namespace rollcall {
namespace {

using segment::SegmentHeader;

// Reads a small file; "" on an error.
void ReadSmallFile(const char* path, char* out, size_t size) {
  out[0] = '\0';
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t length = read(fd, out, size - 1);
  close(fd);
  out[length > 0 ? length : 0] = '\0';
}

// The kernel removes the time-stamp counter from this list if it finds that it differs between
// cores or stops. Without the list the counter counts as trusted.
bool KernelTrustsCounter() {
#if defined(__x86_64__)
  char list[256];
  const int fd = open("/sys/devices/system/clocksource/clocksource0/available_clocksource",
                      O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  const ssize_t size = read(fd, list, sizeof(list) - 1);
  close(fd);
  if (size <= 0) return true;
  list[size] = '\0';
  return strstr(list, "tsc") != nullptr;
#else
  return true;
#endif
}

// 1 + their number, as the kernel reports since Linux 5.9; 0 if it does not.
uint32_t SeccompFilters() {
  char status[4096];
  ReadSmallFile("/proc/self/status", status, sizeof(status));
  constexpr char kLabel[] = "\nSeccomp_filters:\t";
  const char* at = strstr(status, kLabel);
  return at == nullptr ? 0 : 1 + static_cast<uint32_t>(LeadingNumber(at + sizeof(kLabel) - 1));
}

}  // namespace

uint64_t OwnStartTime() {
  char text[1024];
  ReadSmallFile("/proc/self/stat", text, sizeof(text));
  // The name is in parentheses and may contain blanks and parentheses.
  const char* at = strrchr(text, ')');
  if (at == nullptr) return 0;
  for (int field = 2; field < 22 && at != nullptr; ++field) at = strchr(at + 1, ' ');
  return at == nullptr ? 0 : LeadingNumber(at);
}

segment::ClockSource ChooseClock() {
  return CounterIsInvariant() && KernelTrustsCounter() ? segment::ClockSource::kCounter
                                                       : segment::ClockSource::kMonotonic;
}

void FillHeader(SegmentHeader* header, uint64_t start_time) {
  header->layout_version = segment::kLayoutVersion;
  header->header_bytes = segment::kHeaderBytes;
  header->comm_block_bytes = segment::kCommBlockBytes;
  header->ring_capacity = segment::kRingCapacity;
  header->blocked_capacity = segment::kBlockedCapacity;
  header->checkpoint_interval = segment::kCheckpointInterval;
  header->stack_slots = segment::kStackSlots;
  header->pid = static_cast<int32_t>(getpid());
  header->start_time = start_time;
  gethostname(header->host, sizeof(header->host) - 1);
  char boot_id[sizeof(header->boot_id)];
  ReadSmallFile("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id));
  CopyText(header->boot_id, sizeof(header->boot_id), boot_id);
  CopyJobName(FindJob(&GetSetting), header->long_job);
  CopyText(header->job, sizeof(header->job), header->long_job);
  const Place place = FindPlace(&getenv);
  header->global_rank = place.rank;
  header->world_size = place.world_size;
  header->local_rank = place.local_rank;
  ReadSmallFile("/proc/self/cmdline", header->command, sizeof(header->command));
  CopyText(header->library_version, sizeof(header->library_version), ROLLCALL_VERSION);
  CopyText(header->gpu_sharing, sizeof(header->gpu_sharing), FindGpuSharing(&getenv));
  header->clock_source = recorder.clock;
  header->seccomp_filters.store(SeccompFilters(), std::memory_order_relaxed);
  SetClock(&header->first_clock);
  CopyAnnotations(&header->annotations);
}

}  // namespace rollcall

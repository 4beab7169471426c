// SPDX-License-Identifier: Apache-2.0
// Another profiler plugin. With its first communicator it requests the events OTHER_MASK. It ends
// the process if it gets one that it has not requested, or a handle or context that it has not
// made.
#include <stdlib.h>
#include <unistd.h>

#include "interpose/calls/profiler_abi.h"

namespace profiler = rollcall::profiler;

namespace {

constexpr int kHandles = 4096;
char handles[kHandles];
int made = 0;
int mask = 0;

void Expect(bool condition, int code) {
  if (!condition) _exit(code);
}
bool IsOwn(const void* handle) {
  const char* at = static_cast<const char*>(handle);
  return at >= handles && at < handles + made;
}
void* Make() { return &handles[made++]; }

int Init(void** context, uint64_t, int* wanted, const char*, int, int, int, void*) {
  if (made == 0) mask = *wanted = atoi(getenv("OTHER_MASK"));
  *context = Make();
  return 0;
}
int Start(void* context, void** handle, void* given) {
  const auto* event = static_cast<const profiler::Descriptor*>(given);
  Expect(IsOwn(context), 91);
  Expect((event->type & static_cast<uint64_t>(mask)) != 0, 92);
  Expect(event->parent == nullptr || IsOwn(event->parent), 93);
  *handle = Make();
  return 0;
}
int Stop(void* handle) {
  Expect(IsOwn(handle), 94);
  return 0;
}
int Record(void* handle, int, void*) {
  Expect(IsOwn(handle), 95);
  return 0;
}
int Finalize(void* context) {
  Expect(IsOwn(context), 96);
  return 0;
}

}  // namespace

#define TABLE(version)                              \
  extern "C" __attribute__((visibility("default"))) \
  const profiler::Table ncclProfiler_v##version = { \
      "other", reinterpret_cast<void (*)()>(&Init), Start, Stop, Record, Finalize};
TABLE(5)
TABLE(6)

// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/cuda/event.h"

#include <time.h>

#include <atomic>
#include <map>

#include "tests/sim/cuda/device.h"
#include "tests/sim/made_once.h"

namespace rollcall::sim {
namespace {

// The last record of an event.
struct Recording {
  Point point;
  GraphRef capture;  // recorded inside this capture; then it cannot be queried
  std::shared_ptr<std::atomic<int64_t>> time_ns;
};

struct Event {
  unsigned flags = 0;
  std::mutex mutex;
  Recording recording;
};
using EventRef = std::shared_ptr<Event>;

struct Events {
  std::mutex mutex;
  std::map<const void*, EventRef> all;
};

Events& AllEvents() { return MadeOnce<Events>(); }

EventRef Find(CUevent handle) {
  std::lock_guard lock(AllEvents().mutex);
  const auto found = AllEvents().all.find(handle);
  return found == AllEvents().all.end() ? nullptr : found->second;
}

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

bool Read(CUevent handle, Recording* recording) {
  const EventRef event = Find(handle);
  if (event == nullptr) return false;
  std::lock_guard lock(event->mutex);
  *recording = event->recording;
  return true;
}

}  // namespace

CUresult CreateEvent(unsigned flags, CUevent* handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto event = std::make_shared<Event>();
  event->flags = flags;
  *handle = reinterpret_cast<CUevent>(event.get());
  std::lock_guard lock(AllEvents().mutex);
  AllEvents().all[*handle] = std::move(event);
  return CUDA_SUCCESS;
}

CUresult DestroyEvent(CUevent handle) {
  std::lock_guard lock(AllEvents().mutex);
  return AllEvents().all.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult RecordEvent(CUevent handle, const StreamRef& stream) {
  const EventRef event = Find(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Recording recording;
  {
    std::lock_guard lock(DeviceAt(stream->device).mutex);
    recording.capture = stream->capture;
  }
  recording.time_ns = std::make_shared<std::atomic<int64_t>>(0);
  if (recording.capture == nullptr) {
    recording.point = Enqueue(stream, [time = recording.time_ns] { *time = NowNs(); });
  }
  std::lock_guard lock(event->mutex);
  event->recording = std::move(recording);
  return CUDA_SUCCESS;
}

CUresult QueryEvent(CUevent handle) {
  Recording recording;
  if (!Read(handle, &recording)) return CUDA_ERROR_INVALID_HANDLE;
  if (recording.capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
  return Reached(recording.point) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult SynchronizeEvent(CUevent handle) {
  Recording recording;
  if (!Read(handle, &recording)) return CUDA_ERROR_INVALID_HANDLE;
  if (recording.capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
  WaitFor(recording.point);
  return CUDA_SUCCESS;
}

CUresult ElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  Recording first, last;
  if (!Read(start, &first) || !Read(end, &last)) return CUDA_ERROR_INVALID_HANDLE;
  if (first.time_ns == nullptr || last.time_ns == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!Reached(first.point) || !Reached(last.point)) return CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>(static_cast<double>(*last.time_ns - *first.time_ns) / 1e6);
  return CUDA_SUCCESS;
}

CUresult WaitForEvent(const StreamRef& stream, CUevent handle) {
  Recording recording;
  if (!Read(handle, &recording)) return CUDA_ERROR_INVALID_HANDLE;
  if (recording.capture != nullptr) {
    // A stream that waits for a captured event joins that capture.
    std::lock_guard lock(DeviceAt(stream->device).mutex);
    if (stream->legacy) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (stream->capture != nullptr && stream->capture != recording.capture) {
      return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    stream->capture = recording.capture;
    return CUDA_SUCCESS;
  }
  if (!Reached(recording.point)) Enqueue(stream, [] {}, {recording.point});
  return CUDA_SUCCESS;
}

}  // namespace rollcall::sim

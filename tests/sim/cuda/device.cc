// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/cuda/device.h"

#include <pthread.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>

#include "tests/sim/made_once.h"

namespace rollcall::sim {
namespace {

constexpr int kMaxDevices = 1024;
constexpr int kContextStack = 16;

// A thread's stack of contexts, as devices; the top is the current one.
struct ThreadContexts {
  int depth;
  int device[kContextStack];
};
thread_local ThreadContexts contexts;

std::atomic<bool> forked_away{false};

// All devices. Never destroyed: streams may run while the process ends.
struct Machine {
  Machine() : devices(DeviceCount()) {
    for (size_t i = 0; i < devices.size(); ++i) {
      devices[i] = std::make_unique<Device>();
      devices[i]->legacy = std::make_shared<Stream>(static_cast<int>(i), true, 0u, 0);
    }
    pthread_atfork(nullptr, nullptr, [] { forked_away = true; });
  }
  std::vector<std::unique_ptr<Device>> devices;
};

// The calling thread's own default stream on each device that the thread uses.
thread_local std::shared_ptr<std::array<StreamRef, kMaxDevices>> thread_streams;

StreamRef ThreadStream(int device) {
  if (thread_streams == nullptr) {
    thread_streams = std::make_shared<std::array<StreamRef, kMaxDevices>>();
  }
  StreamRef& stream = (*thread_streams)[device];
  if (stream == nullptr) {
    stream = std::make_shared<Stream>(device, false, 0u, 0);
    Device& owner = DeviceAt(device);
    std::lock_guard lock(owner.mutex);
    owner.streams.push_back(stream);
  }
  return stream;
}

std::vector<StreamRef> AllStreams(int device) {
  Device& owner = DeviceAt(device);
  std::lock_guard lock(owner.mutex);
  std::vector<StreamRef> all = owner.streams;
  all.push_back(owner.legacy);
  return all;
}

}  // namespace

int DeviceCount() {
  static const int count = [] {
    const char* value = getenv("ROLLCALL_SIM_DEVICES");
    if (value == nullptr) return 64;
    return std::clamp(atoi(value), 0, kMaxDevices);
  }();
  return count;
}

Device& DeviceAt(int device) { return *MadeOnce<Machine>().devices[device]; }

int CurrentDevice() { return contexts.depth == 0 ? -1 : contexts.device[contexts.depth - 1]; }

int RequireDevice() {
  if (CurrentDevice() < 0 && DeviceCount() > 0) SetCurrentDevice(0);
  return CurrentDevice();
}

bool SetCurrentDevice(int device) {
  if (device >= DeviceCount()) return false;
  if (device < 0) {
    if (contexts.depth > 0) --contexts.depth;
    return true;
  }
  DeviceAt(device);  // from here on a fork leaves the child without a GPU
  if (contexts.depth == 0) contexts.depth = 1;
  contexts.device[contexts.depth - 1] = device;
  return true;
}

bool PushDevice(int device) {
  if (device < 0 || device >= DeviceCount() || contexts.depth == kContextStack) return false;
  contexts.device[contexts.depth++] = device;
  return true;
}

int PopDevice() { return contexts.depth == 0 ? -1 : contexts.device[--contexts.depth]; }

bool ForkedAway() { return forked_away; }

CUresult FindStream(int device, CUstream handle, StreamRef* stream) {
  if (device < 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (handle == nullptr || handle == CU_STREAM_LEGACY) {
    *stream = DeviceAt(device).legacy;
    return CUDA_SUCCESS;
  }
  if (handle == CU_STREAM_PER_THREAD) {
    *stream = ThreadStream(device);
    return CUDA_SUCCESS;
  }
  // A handle nearly always belongs to the current device, but works from any other, too.
  for (int i = 0; i < DeviceCount(); ++i) {
    Device& owner = DeviceAt((device + i) % DeviceCount());
    std::lock_guard lock(owner.mutex);
    for (const StreamRef& candidate : owner.streams) {
      if (candidate.get() != reinterpret_cast<Stream*>(handle)) continue;
      *stream = candidate;
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_INVALID_HANDLE;
}

CUresult CreateStream(int device, unsigned flags, int priority, CUstream* handle) {
  if (device < 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (handle == nullptr || flags > 1) return CUDA_ERROR_INVALID_VALUE;
  Device& owner = DeviceAt(device);
  auto stream = std::make_shared<Stream>(device, false, flags, priority);
  std::lock_guard lock(owner.mutex);
  owner.streams.push_back(stream);
  *handle = reinterpret_cast<CUstream>(stream.get());
  return CUDA_SUCCESS;
}

CUresult DestroyStream(CUstream handle) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  StreamRef stream;
  const CUresult found = FindStream(std::max(0, CurrentDevice()), handle, &stream);
  if (found != CUDA_SUCCESS) return found;
  Device& owner = DeviceAt(stream->device);
  std::lock_guard lock(owner.mutex);
  owner.streams.erase(std::find(owner.streams.begin(), owner.streams.end(), stream));
  stream->Close();
  return CUDA_SUCCESS;
}

CUresult SynchronizeStream(const StreamRef& stream) {
  {
    Device& owner = DeviceAt(stream->device);
    std::lock_guard lock(owner.mutex);
    if (stream->capture != nullptr) {
      stream->capture->broken = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  WaitFor(StreamTail(stream));
  return CUDA_SUCCESS;
}

void SynchronizeDevice(int device) {
  for (const StreamRef& stream : AllStreams(device)) WaitFor(stream->Tail());
}

bool AnyCapture(Device& device) {
  std::lock_guard lock(device.mutex);
  return std::any_of(device.streams.begin(), device.streams.end(),
                     [](const StreamRef& stream) { return stream->capture != nullptr; });
}

CUresult BeginCapture(const StreamRef& stream) {
  if (stream->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  std::lock_guard lock(DeviceAt(stream->device).mutex);
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  static std::atomic<uint64_t> last_id{0};
  stream->capture = std::make_shared<Graph>();
  stream->capture->capture_id = ++last_id;
  stream->owns_capture = true;
  return CUDA_SUCCESS;
}

CUresult EndCapture(const StreamRef& stream, GraphRef* graph) {
  Device& owner = DeviceAt(stream->device);
  std::lock_guard lock(owner.mutex);
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (!stream->owns_capture) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  *graph = stream->capture;
  for (const StreamRef& other : owner.streams) {
    if (other->capture == *graph) other->capture = nullptr;
  }
  stream->owns_capture = false;
  return (*graph)->broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

CUresult CaptureStatus(const StreamRef& stream, CUstreamCaptureStatus* status) {
  Device& owner = DeviceAt(stream->device);
  if (stream->legacy && AnyCapture(owner)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  std::lock_guard lock(owner.mutex);
  *status = stream->capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream->capture->broken  ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

uint64_t CaptureId(const StreamRef& stream) {
  std::lock_guard lock(DeviceAt(stream->device).mutex);
  return stream->capture == nullptr ? 0 : stream->capture->capture_id;
}

CUresult LaunchGraph(const GraphRef& graph, const StreamRef& stream) {
  Enqueue(stream, [graph] {
    for (const Work& node : graph->nodes) node();
  });
  return CUDA_SUCCESS;
}

}  // namespace rollcall::sim

// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/record/markers.h"

#include <cuda.h>
#include <dlfcn.h>

#include "interpose/keep_cancel.h"
#include "interpose/keep_errno.h"
#include "interpose/real.h"
#include "interpose/recorder.h"

namespace rollcall {

std::atomic<uint32_t> captures_open{0};

namespace {

// The driver's functions. The first five are required for markers: without one of them the library
// uses none. The others, for captures and for communicators of several devices, are optional.
struct Driver {
  CUresult (*write_value)(CUstream, CUdeviceptr, cuuint64_t, unsigned);
  CUresult (*host_register)(void*, size_t, unsigned);
  CUresult (*device_pointer)(CUdeviceptr*, void*, unsigned);
  CUresult (*is_capturing)(CUstream, CUstreamCaptureStatus*);
  CUresult (*current_context)(CUcontext*);

  CUresult (*capture_info)(CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*,
                           const CUgraphNode**, size_t*);
  CUresult (*push_context)(CUcontext);
  CUresult (*pop_context)(CUcontext*);
  CUresult (*retain_primary)(CUcontext*, CUdevice);
  CUresult (*release_primary)(CUdevice);
  CUresult (*exchange_capture_mode)(CUstreamCaptureMode*);
};
Driver driver;
std::atomic<int> driver_state{0};  // 0 not searched, 1 searching, 2 complete, 3 not available

template <typename F>
bool Find(void* library, const char* name, F* function) {
  *function = reinterpret_cast<F>(RealDlsym()(library, name));
  return *function != nullptr;
}

bool LoadDriver() {
  // NOLOAD: a process that uses a GPU has loaded the driver. NODELETE: we keep its functions.
  void* library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NODELETE | RTLD_LAZY);
  if (library == nullptr) return false;
  Find(library, "cuStreamGetCaptureInfo_v2", &driver.capture_info);
  Find(library, "cuCtxPushCurrent_v2", &driver.push_context);
  Find(library, "cuCtxPopCurrent_v2", &driver.pop_context);
  Find(library, "cuDevicePrimaryCtxRetain", &driver.retain_primary);
  Find(library, "cuDevicePrimaryCtxRelease_v2", &driver.release_primary);
  Find(library, "cuThreadExchangeStreamCaptureMode", &driver.exchange_capture_mode);
  return Find(library, "cuStreamWriteValue64_v2", &driver.write_value) &&
         Find(library, "cuMemHostRegister_v2", &driver.host_register) &&
         Find(library, "cuMemHostGetDevicePointer_v2", &driver.device_pointer) &&
         Find(library, "cuStreamIsCapturing", &driver.is_capturing) &&
         Find(library, "cuCtxGetCurrent", &driver.current_context);
}

bool HaveDriver() {
  int state = driver_state.load(std::memory_order_acquire);
  if (state == 0 && driver_state.compare_exchange_strong(state, 1)) {
    const KeepCancel keep_cancel;
    const KeepErrno keep_errno;
    state = LoadDriver() ? 2 : 3;
    dlerror();
    driver_state.store(state, std::memory_order_release);
  }
  return state == 2;
}

uint32_t LaneNumber(const void* stream) {
  return segment::Mix(0, reinterpret_cast<uintptr_t>(stream)) % segment::kMarkerLanes;
}

bool Write(LocalComm* comm, CUstream stream, const segment::Word* word, uint64_t value) {
  const size_t offset = reinterpret_cast<const char*>(word) - reinterpret_cast<char*>(comm->lanes);
  return driver.write_value(stream, comm->marker_base + offset, value,
                            CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS;
}

// Records that another stream uses the lane. CU_STREAM_PER_THREAD is a different stream in each
// thread.
__attribute__((noinline, cold)) void SetLaneStream(LocalComm* comm, PlacedMarker* placed,
                                                   const void* stream) {
  if (placed->word != nullptr || stream == CU_STREAM_PER_THREAD) comm->placed_out_of_order = true;
  placed->stream = stream;
}

// Records the marker and writes it. Records first: a write that fails must look as if it never
// lands.
bool Place(LocalComm* comm, PlacedMarker* placed, CUstream stream, const segment::Word* word,
           uint64_t value) {
  placed->word = word;
  placed->value = value;
  return Write(comm, stream, word, value);
}

segment::GraphLane* GraphLaneAt(LocalComm* comm, uint32_t lane) {
  return reinterpret_cast<segment::GraphLane*>(comm->lanes + segment::kMarkerLanes) + lane;
}

// A capture's id, plus this offset, never equals kOffLimits.
constexpr uint64_t kFirstCapture = kOffLimits + 1;

// Makes `context` current for the time of a scope. One thread may use several devices, and end a
// group with calls on all of them.
class InContext {
 public:
  explicit InContext(CUcontext context) {
    CUcontext current = nullptr;
    if (context == nullptr || driver.current_context(&current) != CUDA_SUCCESS) return;
    is_current_ = current == context;
    if (is_current_ || driver.push_context == nullptr || driver.pop_context == nullptr) return;
    is_current_ = pushed_ = driver.push_context(context) == CUDA_SUCCESS;
  }
  ~InContext() {
    CUcontext popped;
    if (pushed_) driver.pop_context(&popped);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

  bool is_current() const { return is_current_; }

 private:
  bool is_current_ = false;
  bool pushed_ = false;
};

// While an object lives, driver calls of this thread invalidate no capture of another thread.
class ApartFromCaptures {
 public:
  ApartFromCaptures() {
    if (driver.exchange_capture_mode != nullptr) driver.exchange_capture_mode(&mode_);
  }
  ~ApartFromCaptures() {
    if (driver.exchange_capture_mode != nullptr) driver.exchange_capture_mode(&mode_);
  }
  ApartFromCaptures(const ApartFromCaptures&) = delete;
  ApartFromCaptures& operator=(const ApartFromCaptures&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

bool CanHaveMarkers() { return recorder.options.markers && HaveDriver(); }

void EnableIn(CUcontext context, LocalComm* comm) {
  const InContext in_context(context);
  if (!in_context.is_current()) return;
  const ApartFromCaptures apart;
  constexpr size_t kBytes = segment::kRingOffset - segment::kMarkersOffset;
  const CUresult registered = driver.host_register(
      comm->lanes, kBytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  // The block of an earlier communicator is still registered.
  if (registered != CUDA_SUCCESS && registered != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) return;
  CUdeviceptr base = 0;
  if (driver.device_pointer(&base, comm->lanes, 0) != CUDA_SUCCESS) return;
  comm->context = context;
  comm->marker_base = base;
  if (comm->markers_unproven) return;
  uint32_t flags = segment::kFlagMarkers;
  if (recorder.options.graph_markers) flags |= segment::kFlagGraphMarkers;
  comm->entry->flags.fetch_or(flags);
}

// Queries the capture of a HIP stream, if the program has captured one.
uint64_t CaptureOnHip(void* stream) {
  const auto captured = &real_functions[static_cast<int>(Fn::k_hipStreamBeginCapture)];
  if (captured->load(std::memory_order_acquire) == nullptr) return 0;
  using Info = int (*)(void*, int*, unsigned long long*);
  static std::atomic<Info> info{nullptr};
  Info ask = info.load(std::memory_order_acquire);
  if (ask == nullptr) {
    ask = reinterpret_cast<Info>(FindRealByName("hipStreamGetCaptureInfo"));
    info.store(ask, std::memory_order_release);
  }
  int status = 0;
  unsigned long long id = 0;
  if (ask == nullptr) return 0;
  if (ask(stream, &status, &id) != 0) return kOffLimits;
  return status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? id + kFirstCapture : 0;
}

}  // namespace

void SwitchMarkersOff(LocalComm* comm) {
  comm->marker_base = 0;
  comm->late.marking_thread.store(0, std::memory_order_relaxed);
  comm->entry->flags.fetch_and(
      ~static_cast<uint32_t>(segment::kFlagMarkers | segment::kFlagGraphMarkers));
}

bool MarkersHaveLanded(const LocalComm* comm) {
  if (comm->placed_out_of_order) return false;
  for (const PlacedMarker& placed : comm->placed) {
    if (placed.word != nullptr && placed.word->load() != placed.value) return false;
  }
  return true;
}

void EnableMarkers(LocalComm* comm) {
  const KeepErrno keep_errno;
  if (!CanHaveMarkers()) return;
  CUcontext context = nullptr;
  if (driver.current_context(&context) == CUDA_SUCCESS) EnableIn(context, comm);
}

void EnableMarkersOnDevice(LocalComm* comm) {
  const KeepErrno keep_errno;
  if (!CanHaveMarkers() || driver.retain_primary == nullptr || driver.release_primary == nullptr) {
    return;
  }
  const auto device = static_cast<CUdevice>(comm->entry->device.load(std::memory_order_relaxed));
  CUcontext context = nullptr;
  if (device < 0 || driver.retain_primary(&context, device) != CUDA_SUCCESS) return;
  EnableIn(context, comm);
  driver.release_primary(device);  // NCCL retains it as long as the communicator exists
}

uint64_t QueryCapture(const LocalComm* comm, void* stream) {
  const KeepErrno keep_errno;
  if (!HaveDriver()) return CaptureOnHip(stream);
  void* context = comm == nullptr ? nullptr : comm->context;
  const InContext in_context(static_cast<CUcontext>(context));
  if (context != nullptr && !in_context.is_current()) return kOffLimits;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const auto cuda_stream = static_cast<CUstream>(stream);
  // An error here means that the capture of another stream forbids calls on this one.
  if (driver.is_capturing(cuda_stream, &status) != CUDA_SUCCESS) return kOffLimits;
  if (status == CU_STREAM_CAPTURE_STATUS_NONE) return 0;
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return kOffLimits;
  cuuint64_t id = 0;
  if (driver.capture_info == nullptr ||
      driver.capture_info(cuda_stream, &status, &id, nullptr, nullptr, nullptr) != CUDA_SUCCESS) {
    return kUnknownCapture;
  }
  return id + kFirstCapture;
}

void PlaceMarkers(LocalComm* comm, void* stream, MarkerPoint point, uint64_t collectives,
                  uint64_t p2p) {
  if (!HasMarkers(comm)) return;
  const KeepErrno keep_errno;
  const InContext in_context(static_cast<CUcontext>(comm->context));
  if (!in_context.is_current()) {
    SwitchMarkersOff(comm);
    return;
  }
  const uint32_t index = LaneNumber(stream);
  const segment::MarkerLane* lane = &comm->lanes[index];
  PlacedMarker* last = &comm->placed[index];
  if (__builtin_expect(last->stream != stream, 0)) SetLaneStream(comm, last, stream);
  const bool started = point == MarkerPoint::kStarted;
  const auto cuda_stream = static_cast<CUstream>(stream);
  const bool placed =
      (collectives == 0 ||
       Place(comm, last, cuda_stream, started ? &lane->started : &lane->finished, collectives)) &&
      (p2p == 0 ||
       Place(comm, last, cuda_stream, started ? &lane->p2p_started : &lane->p2p_finished, p2p));
  if (!placed) SwitchMarkersOff(comm);
}

void MarkBefore(LocalComm* comm, void* stream, uint64_t collectives, uint64_t p2p) {
  if (comm->non_blocking) {
    // NCCL has launched the earlier call, or it would refuse this one. But the thread that made the
    // earlier call has not asked NCCL for it, so its last marker would be missing for long. Such a
    // program gets no markers.
    if (comm->late.marking_thread.load(std::memory_order_relaxed) != 0) {
      return SwitchMarkersOff(comm);
    }
  }
  PlaceMarkers(comm, stream, MarkerPoint::kStarted, collectives, p2p);
}

void MarkAfter(LocalComm* comm, void* stream, uint64_t collectives, uint64_t p2p) {
  PlaceMarkers(comm, stream, MarkerPoint::kFinished, collectives, p2p);
  if (!comm->markers_unproven || !HasMarkers(comm)) return;
  comm->markers_unproven = false;
  comm->entry->flags.fetch_or(segment::kFlagMarkers);
}

void PlaceGraphMarker(LocalComm* comm, void* stream, uint32_t lane, uint64_t reached,
                      uint64_t p2p_reached) {
  const KeepErrno keep_errno;
  const InContext in_context(static_cast<CUcontext>(comm->context));
  if (!in_context.is_current()) return;
  comm->placed_out_of_order = true;
  segment::GraphLane* words = GraphLaneAt(comm, lane);
  const auto cuda_stream = static_cast<CUstream>(stream);
  const bool placed =
      (reached == 0 || Write(comm, cuda_stream, &words->reached, reached)) &&
      (p2p_reached == 0 || Write(comm, cuda_stream, &words->p2p_reached, p2p_reached));
  if (!placed) SwitchMarkersOff(comm);
}

void PlaceGraphBase(LocalComm* comm, void* stream, uint32_t lane, uint64_t base,
                    uint64_t p2p_base) {
  if (!HasMarkers(comm)) return;
  const KeepErrno keep_errno;
  const InContext in_context(static_cast<CUcontext>(comm->context));
  if (!in_context.is_current()) return SwitchMarkersOff(comm);
  comm->placed_out_of_order = true;
  segment::GraphLane* words = GraphLaneAt(comm, lane);
  const auto cuda_stream = static_cast<CUstream>(stream);
  const bool placed = Write(comm, cuda_stream, &words->reached, 0) &&
                      Write(comm, cuda_stream, &words->p2p_reached, 0) &&
                      Write(comm, cuda_stream, &words->base, base) &&
                      Write(comm, cuda_stream, &words->p2p_base, p2p_base);
  if (!placed) SwitchMarkersOff(comm);
}

}  // namespace rollcall

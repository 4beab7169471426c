// SPDX-License-Identifier: Apache-2.0
/* What a program may tell Rollcall about itself: its step, its phase, the shapes of its
 * tensors, a name for a communicator. Verdicts then say "in step 812 (validation)", and name what they speak of.
 *
 * One C header and nothing to link. The symbols are weak: librollcall.so has them
 * where it is preloaded, and elsewhere each of these costs one branch. They may be
 * called from any thread, before and after the first NCCL call; they never block,
 * allocate or fail. From Python, where ctypes finds what is preloaded:
 *
 *     rollcall = ctypes.CDLL(None)
 *     if hasattr(rollcall, "rollcall_set_step"): rollcall.rollcall_set_step(ctypes.c_uint64(step))
 */
#ifndef ROLLCALL_H
#define ROLLCALL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* librollcall.so's; null where it is not loaded. Call the functions below instead. */
__attribute__((weak)) void rollcall_set_step(uint64_t step);
__attribute__((weak)) void rollcall_set_phase(const char* name);
__attribute__((weak)) void rollcall_set_shape(int dims, const int64_t* sizes);
__attribute__((weak)) void rollcall_name_comm(const void* comm, const char* name);

/* The step of the training loop that this process is in, as its logs count it. */
static inline void RollcallStep(uint64_t step) {
  if (rollcall_set_step) rollcall_set_step(step);
}

/* What it does now: "validation". At most 47 bytes are kept; "" or NULL: nothing to say. */
static inline void RollcallPhase(const char* name) {
  if (rollcall_set_phase) rollcall_set_phase(name);
}

/* The sizes of the tensor that this thread's next NCCL call is about, outermost first; at most
 * nine, and at most 255 different shapes in a process: what is beyond is not told. NCCL itself
 * knows elements only; a verdict then says "float32 x 4194304 as [1024, 4096]". */
static inline void RollcallShape(int dims, const int64_t* sizes) {
  if (rollcall_set_shape) rollcall_set_shape(dims, sizes);
}

/* A name for an ncclComm_t, for people: "tensor parallel". At most 63 bytes are kept; a
 * communicator that is not known is passed over. */
static inline void RollcallName(const void* comm, const char* name) {
  if (rollcall_name_comm) rollcall_name_comm(comm, name);
}

#ifdef __cplusplus
}
#endif

#endif /* ROLLCALL_H */

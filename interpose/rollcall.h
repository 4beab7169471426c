// SPDX-License-Identifier: Apache-2.0
/* Annotations by which a program describes itself to Rollcall: its step, its phase, the shapes of
 * its tensors, a name for a communicator. Verdicts then say "in step 812 (validation)", and name
 * the communicator.
 *
 * One C header and nothing to link. The symbols are weak: librollcall.so defines them if it is
 * preloaded, and otherwise each call costs one branch. Any thread may call these functions, before
 * and after the first NCCL call. They never block, allocate or fail. From Python, where ctypes
 * finds preloaded symbols:
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

/* Defined by librollcall.so; null without it. Call the functions below instead. */
__attribute__((weak)) void rollcall_set_step(uint64_t step);
__attribute__((weak)) void rollcall_set_phase(const char* name);
__attribute__((weak)) void rollcall_set_shape(int dims, const int64_t* sizes);
__attribute__((weak)) void rollcall_name_comm(const void* comm, const char* name);

/* The current step of the training loop, as the program's logs count it. */
static inline void RollcallStep(uint64_t step) {
  if (rollcall_set_step) rollcall_set_step(step);
}

/* The current phase: "validation". Of a longer one the words that fit into
 * 47 bytes are kept. "" or NULL: no phase. */
static inline void RollcallPhase(const char* name) {
  if (rollcall_set_phase) rollcall_set_phase(name);
}

/* The sizes of the tensor of this thread's next NCCL call, outermost first. At most nine sizes, and
 * at most 255 different shapes in a process; further shapes are ignored. NCCL itself has only a
 * number of elements. With a shape a verdict says "float32 x 4194304 as [1024, 4096]". */
static inline void RollcallShape(int dims, const int64_t* sizes) {
  if (rollcall_set_shape) rollcall_set_shape(dims, sizes);
}

/* A name of an ncclComm_t in reports: "tensor parallel". At most 63 bytes are kept. An unknown
 * communicator is ignored. */
static inline void RollcallName(const void* comm, const char* name) {
  if (rollcall_name_comm) rollcall_name_comm(comm, name);
}

#ifdef __cplusplus
}
#endif

#endif /* ROLLCALL_H */

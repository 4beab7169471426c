// SPDX-License-Identifier: Apache-2.0
// The native part of Odd.java.
#include <jni.h>
#include <nccl.h>

JNIEXPORT jint JNICALL Java_Odd_work(JNIEnv* environment, jclass type) {
  ncclUniqueId id;
  ncclComm_t comm;
  (void)environment, (void)type;
  if (ncclGetUniqueId(&id) != 0 || ncclCommInitRank(&comm, 2, id, 0) != 0) return 0;
  for (int i = 0; i < 500; ++i) {
    if (ncclAllReduce(0, 0, 8, ncclFloat, ncclSum, comm, 0) != 0) return 0;
  }
  return ncclCommDestroy(comm) == 0;
}

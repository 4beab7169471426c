// SPDX-License-Identifier: Apache-2.0
// The functions of HCCL (Ascend's NCCL) and of its runtime that the library wraps, with types that
// need none of its headers: enumerations are ints, handles are pointers.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {
struct HcclRootInfo {
  char internal[4108];
};

// One message of HcclBatchSendRecv.
struct HcclSendRecvItem {
  int type;  // 0: a send, 1: a receive
  void* buffer;
  uint64_t count;
  int data_type;
  uint32_t remote_rank;
};

#define ENQUEUED(symbol, op, dtype, reduction, peer, count, parameters, arguments) \
  int symbol(parameters);
#include "interpose/hccl_calls.def"

int HcclBatchSendRecv(HcclSendRecvItem* items, uint32_t count, void* comm, void* stream);
int HcclGroupStart();
int HcclGroupEnd();

int HcclCommInitRootInfo(uint32_t ranks, const HcclRootInfo* id, uint32_t rank, void** comm);
int HcclCommInitRootInfoConfig(uint32_t ranks, const HcclRootInfo* id, uint32_t rank,
                               const void* config, void** comm);
int HcclCommInitClusterInfo(const char* file, uint32_t rank, void** comm);
int HcclCommInitClusterInfoConfig(const char* file, uint32_t rank, void* config, void** comm);
int HcclCommInitAll(uint32_t ranks, int32_t* devices, void** comms);
int HcclCreateSubCommConfig(void** comm, uint32_t ranks, uint32_t* ids, uint64_t number,
                            uint32_t rank, void* config, void** created);
int HcclCommDestroy(void* comm);

int aclrtSynchronizeStream(void* stream);
int aclrtSynchronizeStreamWithTimeout(void* stream, int32_t milliseconds);
int aclrtSynchronizeEvent(void* event);
int aclrtSynchronizeDevice();
}

// SPDX-License-Identifier: Apache-2.0
// The declarations of NCCL and CUDA, and of functions that are newer than the NCCL header at hand:
// the library wraps them with any header. It uses only types; nothing here is linked.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

extern "C" {
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 22, 3)
typedef struct ncclSimInfo_v22200 ncclSimInfo_t;
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo);
#endif
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 23, 4)
ncclResult_t ncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId,
                                      ncclUniqueId* commIds, ncclConfig_t* config);
#endif
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 27, 3)
ncclResult_t ncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
                            ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags);
#endif
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 28, 3)
ncclResult_t ncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                        int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff, size_t count,
                         ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);
#endif
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 28, 7)
ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags);
#endif
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 19, 1)
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle);
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle);
ncclResult_t ncclMemAlloc(void** ptr, size_t size);
ncclResult_t ncclMemFree(void* ptr);
#endif
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 27, 3)
typedef struct ncclWindow_vidmem* ncclWindow_t;
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win,
                                    int winFlags);
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);
#endif
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 29, 2)
typedef struct {
  int opCnt;
  int peer;
  int sigIdx;
  int ctx;
} ncclWaitSignalDesc_t;
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* uniqueId);
ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank,
                          ncclComm_t* newcomm, ncclConfig_t* config);
ncclResult_t ncclPutSignal(const void* localbuff, size_t count, ncclDataType_t datatype, int peer,
                           ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx,
                           unsigned int flags, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
                        cudaStream_t stream);
ncclResult_t ncclWaitSignal(int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm,
                            cudaStream_t stream);
#endif
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 29, 7)
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t ncclCommResume(ncclComm_t comm);
#endif
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 31, 2)
typedef struct ncclCollConfig_v23200 ncclCollConfig_t;
ncclResult_t ncclAllReduceConfig(const void* sendbuff, void* recvbuff, size_t count,
                                 ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                 cudaStream_t stream, const ncclCollConfig_t* config);
ncclResult_t ncclAllGatherConfig(const void* sendbuff, void* recvbuff, size_t sendcount,
                                 ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream,
                                 const ncclCollConfig_t* config);
ncclResult_t ncclReduceScatterConfig(const void* sendbuff, void* recvbuff, size_t recvcount,
                                     ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                     cudaStream_t stream, const ncclCollConfig_t* config);
ncclResult_t ncclReduceConfig(const void* sendbuff, void* recvbuff, size_t count,
                              ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
                              cudaStream_t stream, const ncclCollConfig_t* config);
ncclResult_t ncclBroadcastConfig(const void* sendbuff, void* recvbuff, size_t count,
                                 ncclDataType_t datatype, int root, ncclComm_t comm,
                                 cudaStream_t stream, const ncclCollConfig_t* config);
ncclResult_t ncclAlltoAllConfig(const void* sendbuff, void* recvbuff, size_t count,
                                ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream,
                                const ncclCollConfig_t* config);
ncclResult_t ncclGatherConfig(const void* sendbuff, void* recvbuff, size_t count,
                              ncclDataType_t datatype, int root, ncclComm_t comm,
                              cudaStream_t stream, const ncclCollConfig_t* config);
ncclResult_t ncclScatterConfig(const void* sendbuff, void* recvbuff, size_t count,
                               ncclDataType_t datatype, int root, ncclComm_t comm,
                               cudaStream_t stream, const ncclCollConfig_t* config);
#endif

// From nccl_device.h, which is for kernels and which we do not include. Opaque here.
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void* requirements, void* devComm);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const void* devComm);

// Only in RCCL (rccl.h of ROCm 6 and 7).
ncclResult_t ncclAllToAll(const void* sendbuff, void* recvbuff, size_t count,
                          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllToAllv(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                           void* recvbuff, const size_t* recvcounts, const size_t* rdispls,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAlltoAllv(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                           void* recvbuff, const size_t* recvcounts, const size_t* rdispls,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
ncclResult_t mscclRunAlgo(const void* sendBuff, const size_t* sendCounts, const size_t* sDisPls,
                          void* recvBuff, const size_t* recvCounts, const size_t* rDisPls,
                          size_t count, ncclDataType_t dataType, int root, int peer, ncclRedOp_t op,
                          int mscclAlgoHandle, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllReduceWithBias(const void* sendbuff, void* recvbuff, size_t count,
                                   ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                   cudaStream_t stream, const void* acc);

// From HIP's runtime: streams and events are pointers, results are ints.
int hipStreamSynchronize(void* stream);
int hipEventSynchronize(void* event);
int hipDeviceSynchronize();
int hipMemcpy(void* dst, const void* src, size_t sizeBytes, int kind);
}

// NCCL's and CUDA's own declarations, and those of functions that are newer
// than the header at hand: the library wraps them whichever header it is built
// against. Only types are used; nothing here is linked.
#pragma once

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
}

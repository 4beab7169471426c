// SPDX-License-Identifier: Apache-2.0
// A libmpi for tests: the functions of MPI that a test calls, for one rank of two, with nothing
// behind them. Handles are ints and a status has the fields of MPICH's.
//
// A call calls stub_calls, where a real one would call an error handler of the program, and returns
// stub_result. A test of requests completes none while stub_tests_fail is set.
#pragma once

#include <cstdint>

extern void (*stub_calls)();  // nullptr if there is none
extern int stub_result;       // 0 means MPI_SUCCESS
extern bool stub_tests_fail;

inline constexpr int MPI_COMM_WORLD = 0x44000000;
inline constexpr int MPI_REQUEST_NULL = 0x2c000000;
inline constexpr int MPI_INT = 0x4c000405;
inline constexpr int MPI_INFO_NULL = 0x1c000000;
inline constexpr int MPI_ANY_SOURCE = -2;
inline constexpr int MPI_ANY_TAG = -1;

struct MPI_Status {
  int count_low, count_high, MPI_SOURCE, MPI_TAG, MPI_ERROR;
};

extern "C" {
int MPI_Init(int* count, char*** arguments);
int MPI_Comm_dup(int comm, int* created);
int MPI_Comm_free(int* comm);
int MPI_Send(const void* buffer, int count, int type, int to, int tag, int comm);
int MPI_Recv(void* buffer, int count, int type, int from, int tag, int comm, MPI_Status* status);
int MPI_Probe(int from, int tag, int comm, MPI_Status* status);
int MPI_Iprobe(int from, int tag, int comm, int* flag, MPI_Status* status);
int MPI_Isend(const void* buffer, int count, int type, int to, int tag, int comm, int* request);
int MPI_Irecv(void* buffer, int count, int type, int from, int tag, int comm, int* request);
int MPI_Send_init(const void* buffer, int count, int type, int to, int tag, int comm, int* request);
int MPI_Start(int* request);
int MPI_Cancel(int* request);
int MPI_Wait(int* request, MPI_Status* status);
int MPI_Waitall(int count, int* requests, MPI_Status* statuses);
int MPI_Test(int* request, int* flag, MPI_Status* status);
int MPI_Barrier(int comm);
int MPI_Ibarrier(int comm, int* request);
int MPI_Barrier_init(int comm, int info, int* request);
}

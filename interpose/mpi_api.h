// MPI's functions as every implementation can be called: communicators,
// datatypes and operations are pointers in some (Open MPI) and ints in others
// (MPICH, Intel MPI), and both fit a register, so they pass through as words.
// Where they are ints, the upper half of such a word says nothing.
#pragma once

#include <stdint.h>

extern "C" {
using MpiWord = uintptr_t;

int MPI_Barrier(MpiWord comm);
int MPI_Bcast(void* buffer, int count, MpiWord type, int root, MpiWord comm);
int MPI_Reduce(const void* send, void* recv, int count, MpiWord type, MpiWord op, int root,
               MpiWord comm);
int MPI_Allreduce(const void* send, void* recv, int count, MpiWord type, MpiWord op, MpiWord comm);
int MPI_Gather(const void* send, int send_count, MpiWord send_type, void* recv, int recv_count,
               MpiWord recv_type, int root, MpiWord comm);
int MPI_Gatherv(const void* send, int send_count, MpiWord send_type, void* recv,
                const int* recv_counts, const int* places, MpiWord recv_type, int root,
                MpiWord comm);
int MPI_Scatter(const void* send, int send_count, MpiWord send_type, void* recv, int recv_count,
                MpiWord recv_type, int root, MpiWord comm);
int MPI_Scatterv(const void* send, const int* send_counts, const int* places, MpiWord send_type,
                 void* recv, int recv_count, MpiWord recv_type, int root, MpiWord comm);
int MPI_Allgather(const void* send, int send_count, MpiWord send_type, void* recv, int recv_count,
                  MpiWord recv_type, MpiWord comm);
int MPI_Allgatherv(const void* send, int send_count, MpiWord send_type, void* recv,
                   const int* recv_counts, const int* places, MpiWord recv_type, MpiWord comm);
int MPI_Alltoall(const void* send, int send_count, MpiWord send_type, void* recv, int recv_count,
                 MpiWord recv_type, MpiWord comm);
int MPI_Alltoallv(const void* send, const int* send_counts, const int* send_places,
                  MpiWord send_type, void* recv, const int* recv_counts, const int* recv_places,
                  MpiWord recv_type, MpiWord comm);
int MPI_Reduce_scatter(const void* send, void* recv, const int* recv_counts, MpiWord type,
                       MpiWord op, MpiWord comm);
int MPI_Reduce_scatter_block(const void* send, void* recv, int recv_count, MpiWord type, MpiWord op,
                             MpiWord comm);
int MPI_Scan(const void* send, void* recv, int count, MpiWord type, MpiWord op, MpiWord comm);
int MPI_Exscan(const void* send, void* recv, int count, MpiWord type, MpiWord op, MpiWord comm);
int MPI_Comm_dup(MpiWord comm, MpiWord* created);
int MPI_Comm_split(MpiWord comm, int color, int key, MpiWord* created);
int MPI_Comm_split_type(MpiWord comm, int type, int key, MpiWord info, MpiWord* created);
int MPI_Comm_create(MpiWord comm, MpiWord group, MpiWord* created);
int MPI_Comm_free(MpiWord* comm);
int MPI_Finalize();
}

// SPDX-License-Identifier: Apache-2.0
// MPI's functions with types that fit every implementation. Communicators, datatypes and operations
// are pointers in some implementations (Open MPI) and ints in others (MPICH, Intel MPI). Both fit a
// register, so the wrappers pass them through as words. If they are ints, the upper half of a word
// is undefined, and arrays of them are arrays of ints (mpi_comms.h reads them).
#pragma once

#include <stdint.h>

extern "C" {
using MpiWord = uintptr_t;

#define COLLECTIVE(symbol, twin, root, bytes, parameters, arguments) \
  int FORM(symbol)(parameters);                                      \
  int FORM(twin)(parameters, MpiWord * request);                     \
  int FORM(symbol##_init)(parameters, MpiWord info, MpiWord * request);
#include "interpose/mpi_collectives.def"
#define COUNT int64_t
#define FORM(symbol) symbol##_c
#include "interpose/mpi_collectives.def"
#undef COLLECTIVE

int MPI_Comm_dup(MpiWord comm, MpiWord* created);
int MPI_Comm_dup_with_info(MpiWord comm, MpiWord info, MpiWord* created);
int MPI_Comm_idup(MpiWord comm, MpiWord* created, MpiWord* request);
int MPI_Comm_split(MpiWord comm, int color, int key, MpiWord* created);
int MPI_Comm_split_type(MpiWord comm, int type, int key, MpiWord info, MpiWord* created);
int MPI_Comm_create(MpiWord comm, MpiWord group, MpiWord* created);
int MPI_Comm_create_group(MpiWord comm, MpiWord group, int tag, MpiWord* created);
int MPI_Cart_create(MpiWord comm, int dims, const int* sizes, const int* periods, int reorder,
                    MpiWord* created);
int MPI_Cart_sub(MpiWord comm, const int* remain, MpiWord* created);
int MPI_Graph_create(MpiWord comm, int nodes, const int* index, const int* edges, int reorder,
                     MpiWord* created);
int MPI_Dist_graph_create(MpiWord comm, int nodes, const int* sources, const int* degrees,
                          const int* destinations, const int* weights, MpiWord info, int reorder,
                          MpiWord* created);
int MPI_Dist_graph_create_adjacent(MpiWord comm, int in_degree, const int* sources,
                                   const int* source_weights, int out_degree,
                                   const int* destinations, const int* destination_weights,
                                   MpiWord info, int reorder, MpiWord* created);
int MPI_Comm_free(MpiWord* comm);
int MPI_Comm_disconnect(MpiWord* comm);
int MPI_Finalize();

int MPI_Wait(MpiWord* request, void* status);
int MPI_Waitall(int count, MpiWord* requests, void* statuses);
int MPI_Waitany(int count, MpiWord* requests, int* index, void* status);
int MPI_Waitsome(int count, MpiWord* requests, int* done, int* indices, void* statuses);
int MPI_Test(MpiWord* request, int* flag, void* status);
int MPI_Testall(int count, MpiWord* requests, int* flag, void* statuses);
int MPI_Testany(int count, MpiWord* requests, int* index, int* flag, void* status);
int MPI_Testsome(int count, MpiWord* requests, int* done, int* indices, void* statuses);
int MPI_Request_free(MpiWord* request);

int MPI_Send(const void* buffer, int count, MpiWord type, int to, int tag, MpiWord comm);
int MPI_Ssend(const void* buffer, int count, MpiWord type, int to, int tag, MpiWord comm);
int MPI_Bsend(const void* buffer, int count, MpiWord type, int to, int tag, MpiWord comm);
int MPI_Rsend(const void* buffer, int count, MpiWord type, int to, int tag, MpiWord comm);
int MPI_Isend(const void* buffer, int count, MpiWord type, int to, int tag, MpiWord comm,
              MpiWord* request);
int MPI_Issend(const void* buffer, int count, MpiWord type, int to, int tag, MpiWord comm,
               MpiWord* request);
int MPI_Ibsend(const void* buffer, int count, MpiWord type, int to, int tag, MpiWord comm,
               MpiWord* request);
int MPI_Irsend(const void* buffer, int count, MpiWord type, int to, int tag, MpiWord comm,
               MpiWord* request);
int MPI_Recv(void* buffer, int count, MpiWord type, int from, int tag, MpiWord comm, void* status);
int MPI_Irecv(void* buffer, int count, MpiWord type, int from, int tag, MpiWord comm,
              MpiWord* request);
int MPI_Sendrecv(const void* send, int send_count, MpiWord send_type, int to, int send_tag,
                 void* recv, int recv_count, MpiWord recv_type, int from, int recv_tag,
                 MpiWord comm, void* status);
int MPI_Sendrecv_replace(void* buffer, int count, MpiWord type, int to, int send_tag, int from,
                         int recv_tag, MpiWord comm, void* status);
int MPI_Probe(int from, int tag, MpiWord comm, void* status);
int MPI_Send_init(const void* buffer, int count, MpiWord type, int to, int tag, MpiWord comm,
                  MpiWord* request);
int MPI_Ssend_init(const void* buffer, int count, MpiWord type, int to, int tag, MpiWord comm,
                   MpiWord* request);
int MPI_Bsend_init(const void* buffer, int count, MpiWord type, int to, int tag, MpiWord comm,
                   MpiWord* request);
int MPI_Rsend_init(const void* buffer, int count, MpiWord type, int to, int tag, MpiWord comm,
                   MpiWord* request);
int MPI_Recv_init(void* buffer, int count, MpiWord type, int from, int tag, MpiWord comm,
                  MpiWord* request);
int MPI_Start(MpiWord* request);
int MPI_Startall(int count, MpiWord* requests);
int MPI_Iprobe(int from, int tag, MpiWord comm, int* flag, void* status);
int MPI_Mprobe(int from, int tag, MpiWord comm, MpiWord* message, void* status);
int MPI_Improbe(int from, int tag, MpiWord comm, int* flag, MpiWord* message, void* status);
int MPI_Cancel(MpiWord* request);

// With big counts.
int MPI_Send_c(const void* buffer, int64_t count, MpiWord type, int to, int tag, MpiWord comm);
int MPI_Ssend_c(const void* buffer, int64_t count, MpiWord type, int to, int tag, MpiWord comm);
int MPI_Bsend_c(const void* buffer, int64_t count, MpiWord type, int to, int tag, MpiWord comm);
int MPI_Rsend_c(const void* buffer, int64_t count, MpiWord type, int to, int tag, MpiWord comm);
int MPI_Isend_c(const void* buffer, int64_t count, MpiWord type, int to, int tag, MpiWord comm,
                MpiWord* request);
int MPI_Issend_c(const void* buffer, int64_t count, MpiWord type, int to, int tag, MpiWord comm,
                 MpiWord* request);
int MPI_Ibsend_c(const void* buffer, int64_t count, MpiWord type, int to, int tag, MpiWord comm,
                 MpiWord* request);
int MPI_Irsend_c(const void* buffer, int64_t count, MpiWord type, int to, int tag, MpiWord comm,
                 MpiWord* request);
int MPI_Recv_c(void* buffer, int64_t count, MpiWord type, int from, int tag, MpiWord comm,
               void* status);
int MPI_Irecv_c(void* buffer, int64_t count, MpiWord type, int from, int tag, MpiWord comm,
                MpiWord* request);
int MPI_Sendrecv_c(const void* send, int64_t send_count, MpiWord send_type, int to, int send_tag,
                   void* recv, int64_t recv_count, MpiWord recv_type, int from, int recv_tag,
                   MpiWord comm, void* status);
int MPI_Sendrecv_replace_c(void* buffer, int64_t count, MpiWord type, int to, int send_tag,
                           int from, int recv_tag, MpiWord comm, void* status);
int MPI_Send_init_c(const void* buffer, int64_t count, MpiWord type, int to, int tag, MpiWord comm,
                    MpiWord* request);
int MPI_Ssend_init_c(const void* buffer, int64_t count, MpiWord type, int to, int tag, MpiWord comm,
                     MpiWord* request);
int MPI_Bsend_init_c(const void* buffer, int64_t count, MpiWord type, int to, int tag, MpiWord comm,
                     MpiWord* request);
int MPI_Rsend_init_c(const void* buffer, int64_t count, MpiWord type, int to, int tag, MpiWord comm,
                     MpiWord* request);
int MPI_Recv_init_c(void* buffer, int64_t count, MpiWord type, int from, int tag, MpiWord comm,
                    MpiWord* request);

int MPI_Isendrecv(const void* send, int send_count, MpiWord send_type, int to, int send_tag,
                  void* recv, int recv_count, MpiWord recv_type, int from, int recv_tag,
                  MpiWord comm, MpiWord* request);
int MPI_Isendrecv_replace(void* buffer, int count, MpiWord type, int to, int send_tag, int from,
                          int recv_tag, MpiWord comm, MpiWord* request);
int MPI_Isendrecv_c(const void* send, int64_t send_count, MpiWord send_type, int to, int send_tag,
                    void* recv, int64_t recv_count, MpiWord recv_type, int from, int recv_tag,
                    MpiWord comm, MpiWord* request);
int MPI_Isendrecv_replace_c(void* buffer, int64_t count, MpiWord type, int to, int send_tag,
                            int from, int recv_tag, MpiWord comm, MpiWord* request);

int MPI_Init(int* argc, char*** argv);
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided);
}

// SPDX-License-Identifier: Apache-2.0
/* An MPI job in which one rank makes a mistake after a few correct rounds.
 *
 *     mpirun -n 4 mpi_job WHAT [SECONDS]
 */
#include <mpi.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static int rank, size;
static const char* what;

/* Whether this is rank `who` and the mistake of this job is `name`. */
static int Do(int who, const char* name) { return rank == who && strcmp(what, name) == 0; }

static int one, all[64], some[64], counts[64], places[64], bytes[64];
static MPI_Datatype types[64];

static void SetUp(void) {
  for (int i = 0; i < 64; ++i) {
    one = counts[i] = 1;
    some[i] = places[i] = i;
    bytes[i] = (int)sizeof(int) * i;
    types[i] = MPI_INT;
  }
}

/* Waits at a socket for the next request: some come, then none for a while, then the end. */
static int TakeRequest(int from, int number) {
  char request = 1;
  if (number < 6) usleep(100000);
  return number < 6 || recv(from, &request, 1, 0) > 0;
}

/* Rank 0 takes requests from outside, and the others wait for what it hands out. */
static void Serve(int idle_seconds) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  const struct timeval longest = {idle_seconds, 0};
  const int from = socket(AF_INET, SOCK_DGRAM, 0);
  bind(from, (struct sockaddr*)&address, sizeof(address));
  setsockopt(from, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof(longest));
  for (int number = 0, request = 1; request > 0; ++number) {
    if (rank == 0) request = TakeRequest(from, number);
    MPI_Bcast(&request, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  close(from);
}

/* Every blocking collective, on one communicator. */
static void MakeBlockingCalls(MPI_Comm comm) {
  MPI_Barrier(comm);
  MPI_Bcast(&one, 1, MPI_INT, 0, comm);
  MPI_Reduce(&one, all, 1, MPI_INT, MPI_SUM, 0, comm);
  MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_MAX, comm);
  MPI_Gather(&one, 1, MPI_INT, all, 1, MPI_INT, 0, comm);
  MPI_Gatherv(&one, 1, MPI_INT, all, counts, places, MPI_INT, 0, comm);
  MPI_Scatter(some, 1, MPI_INT, &one, 1, MPI_INT, 0, comm);
  MPI_Scatterv(some, counts, places, MPI_INT, &one, 1, MPI_INT, 0, comm);
  MPI_Allgather(&one, 1, MPI_INT, all, 1, MPI_INT, comm);
  MPI_Allgatherv(&one, 1, MPI_INT, all, counts, places, MPI_INT, comm);
  MPI_Alltoall(some, 1, MPI_INT, all, 1, MPI_INT, comm);
  MPI_Alltoallv(some, counts, places, MPI_INT, all, counts, places, MPI_INT, comm);
  MPI_Reduce_scatter(some, &one, counts, MPI_INT, MPI_SUM, comm);
  MPI_Reduce_scatter_block(some, &one, 1, MPI_INT, MPI_SUM, comm);
  MPI_Scan(some, &one, 1, MPI_INT, MPI_SUM, comm);
  MPI_Exscan(some, &one, 1, MPI_INT, MPI_SUM, comm);
  MPI_Alltoallw(some, counts, bytes, types, all, counts, bytes, types, comm);
}

/* Starts every nonblocking collective, all open at once, with a blocking one among them. */
static int StartAll(MPI_Comm comm, MPI_Request* r) {
  static int results[16][64];
  int n = 0, k = 0;
  MPI_Ibarrier(comm, &r[n++]);
  MPI_Ibcast(results[k++], 1, MPI_INT, 0, comm, &r[n++]);
  MPI_Ireduce(some, results[k++], 1, MPI_INT, MPI_SUM, 0, comm, &r[n++]);
  MPI_Iallreduce(some, results[k++], 1, MPI_INT, MPI_MAX, comm, &r[n++]);
  MPI_Igather(some, 1, MPI_INT, results[k++], 1, MPI_INT, 0, comm, &r[n++]);
  MPI_Igatherv(some, 1, MPI_INT, results[k++], counts, places, MPI_INT, 0, comm, &r[n++]);
  MPI_Barrier(comm);
  MPI_Iscatter(some, 1, MPI_INT, results[k++], 1, MPI_INT, 0, comm, &r[n++]);
  MPI_Iscatterv(some, counts, places, MPI_INT, results[k++], 1, MPI_INT, 0, comm, &r[n++]);
  MPI_Iallgather(some, 1, MPI_INT, results[k++], 1, MPI_INT, comm, &r[n++]);
  MPI_Iallgatherv(some, 1, MPI_INT, results[k++], counts, places, MPI_INT, comm, &r[n++]);
  MPI_Ialltoall(some, 1, MPI_INT, results[k++], 1, MPI_INT, comm, &r[n++]);
  MPI_Ialltoallv(some, counts, places, MPI_INT, results[k++], counts, places, MPI_INT, comm,
                 &r[n++]);
  MPI_Ialltoallw(some, counts, bytes, types, results[k++], counts, bytes, types, comm, &r[n++]);
  MPI_Ireduce_scatter(some, results[k++], counts, MPI_INT, MPI_SUM, comm, &r[n++]);
  MPI_Ireduce_scatter_block(some, results[k++], 1, MPI_INT, MPI_SUM, comm, &r[n++]);
  MPI_Iscan(some, results[k++], 1, MPI_INT, MPI_SUM, comm, &r[n++]);
  MPI_Iexscan(some, results[k++], 1, MPI_INT, MPI_SUM, comm, &r[n++]);
  return n;
}

/* Makes every nonblocking collective, and ends the requests in every way. */
static void MakeNonblockingCalls(MPI_Comm comm) {
  MPI_Request r[32];
  int n = StartAll(comm, r), index, done, indices[32], flag = 0;
  MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
  n = StartAll(comm, r);
  while (n > 0 && MPI_Wait(&r[n - 1], MPI_STATUS_IGNORE) == MPI_SUCCESS) --n; /* newest first */
  n = StartAll(comm, r);
  for (int i = 0; i < n; ++i) MPI_Waitany(n, r, &index, MPI_STATUS_IGNORE);
  n = StartAll(comm, r);
  for (int i = 0; i < n; i += done) MPI_Waitsome(n, r, &done, indices, MPI_STATUSES_IGNORE);
  n = StartAll(comm, r);
  while (!flag) MPI_Testall(n, r, &flag, MPI_STATUSES_IGNORE);
  n = StartAll(comm, r);
  for (int i = 0; i < n; ++i) {
    for (flag = 0; !flag;) MPI_Testany(n, r, &index, &flag, MPI_STATUS_IGNORE);
  }
  n = StartAll(comm, r);
  for (int i = 0; i < n; i += done) MPI_Testsome(n, r, &done, indices, MPI_STATUSES_IGNORE);
  MPI_Ibarrier(comm, &r[0]);
  for (flag = 0; !flag;) MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
}

/* Messages around a ring, and their requests among those of collectives. */
static void Messages(MPI_Comm comm) {
  MPI_Request r[3];
  int me, ranks, in = 0;
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &ranks);
  MPI_Sendrecv(&me, 1, MPI_INT, (me + 1) % ranks, 0, &in, 1, MPI_INT, (me + ranks - 1) % ranks, 0,
               comm, MPI_STATUS_IGNORE);
  MPI_Irecv(&in, 1, MPI_INT, (me + ranks - 1) % ranks, 1, comm, &r[0]);
  MPI_Ibarrier(comm, &r[1]);
  MPI_Isend(&me, 1, MPI_INT, (me + 1) % ranks, 1, comm, &r[2]);
  MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
  if (me == 0) {
    MPI_Ssend(&me, 1, MPI_INT, 1, 2, comm);
  } else if (me == 1) {
    MPI_Probe(0, 2, comm, MPI_STATUS_IGNORE);
    MPI_Recv(&in, 1, MPI_INT, 0, 2, comm, MPI_STATUS_IGNORE);
  }
}

/* Neighbours on a ring. */
static void Neighbours(MPI_Comm comm, int blocking) {
  static int near[2] = {1, 2}, from[2], two[2] = {1, 1}, at[2] = {0, 1};
  MPI_Aint apart[2] = {0, sizeof(int)};
  MPI_Request r[5];
  if (blocking) {
    MPI_Neighbor_allgather(near, 1, MPI_INT, from, 1, MPI_INT, comm);
    MPI_Neighbor_allgatherv(near, 1, MPI_INT, from, two, at, MPI_INT, comm);
    MPI_Neighbor_alltoall(near, 1, MPI_INT, from, 1, MPI_INT, comm);
    MPI_Neighbor_alltoallv(near, two, at, MPI_INT, from, two, at, MPI_INT, comm);
    MPI_Neighbor_alltoallw(near, two, apart, types, from, two, apart, types, comm);
    return;
  }
  static int into[5][2];
  MPI_Ineighbor_allgather(near, 1, MPI_INT, into[0], 1, MPI_INT, comm, &r[0]);
  MPI_Ineighbor_allgatherv(near, 1, MPI_INT, into[1], two, at, MPI_INT, comm, &r[1]);
  MPI_Ineighbor_alltoall(near, 1, MPI_INT, into[2], 1, MPI_INT, comm, &r[2]);
  MPI_Ineighbor_alltoallv(near, two, at, MPI_INT, into[3], two, at, MPI_INT, comm, &r[3]);
  MPI_Ineighbor_alltoallw(near, two, apart, types, into[4], two, apart, types, comm, &r[4]);
  MPI_Waitall(5, r, MPI_STATUSES_IGNORE);
}

/* Every way to make a communicator. */
static void MakeCommunicators(void) {
  MPI_Comm ring, rows, graph, spread, adjacent, copy, later, pair, again;
  MPI_Group group, two;
  MPI_Request request;
  int sizes[2] = {2, 2}, periods[2] = {1, 1}, remain[2] = {0, 1}, line = 1, yes = 1;
  int index[4] = {1, 2, 3, 4}, edges[4] = {1, 2, 3, 0};
  int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  if (Do(1, "late to a grid")) pause();
  MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 1, &ring);
  MPI_Cart_sub(ring, remain, &rows);
  MakeBlockingCalls(rows);
  MakeNonblockingCalls(ring);
  MPI_Comm_disconnect(&rows);
  MPI_Comm_free(&ring);
  MPI_Cart_create(MPI_COMM_WORLD, line, &size, &yes, 0, &ring);
  Neighbours(ring, 1);
  Neighbours(ring, 0);
  MPI_Graph_create(MPI_COMM_WORLD, 4, index, edges, 0, &graph);
  MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &yes, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                        &spread);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &previous, MPI_UNWEIGHTED, 1, &next,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &adjacent);
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &copy);
  MPI_Comm_idup(copy, &later, &request);
  MPI_Barrier(copy);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MakeBlockingCalls(graph);
  MakeBlockingCalls(spread);
  MakeBlockingCalls(adjacent);
  MakeBlockingCalls(copy);
  MakeNonblockingCalls(later);
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Group_incl(group, 2, rank < 2 ? (int[]){1, 0} : (int[]){2, 3}, &two);
  if (Do(3, "late to a pair")) pause();
  if (rank < 2 && strstr(what, "a pair") != NULL) sleep(20); /* no part of it */
  MPI_Comm_create_group(MPI_COMM_WORLD, two, 5, &pair);
  if (rank < 2) MPI_Comm_create_group(MPI_COMM_WORLD, two, 5, &again); /* the others do not */
  MakeBlockingCalls(pair);
  if (rank < 2) MakeBlockingCalls(again);
  MPI_Group_free(&two);
  MPI_Group_free(&group);
  if (Do(3, "stuck in a pair")) pause();
  MPI_Barrier(pair);
}

/* The mistakes with nonblocking calls. */
static void Nonblocking(void) {
  MPI_Comm copy;
  MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int in = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  if (strcmp(what, "works meanwhile") == 0) {
    if (rank == 2) sleep(10); /* nobody waits for it: all work */
    MPI_Ibarrier(MPI_COMM_WORLD, &r[0]);
    if (rank != 2) sleep(10);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  }
  if (strcmp(what, "serves meanwhile") == 0) {
    /* A message ends the wait, or the news that rank 2 has no more messages. */
    int index = 1;
    if (rank == 2) sleep(5);
    for (int i = 0; rank == 2 && i < size; ++i) {
      if (i != 2) MPI_Send(&i, 1, MPI_INT, i, 8, copy);
    }
    if (rank != 2) MPI_Irecv(&in, 1, MPI_INT, 2, 8, copy, &r[0]);
    MPI_Ibarrier(copy, &r[1]);
    for (int i = rank == 2; i < 2; ++i) MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE);
    in = 0;
  }
  if (Do(2, "stuck before an Ibarrier")) pause();
  MPI_Ibarrier(MPI_COMM_WORLD, &r[0]);
  if (Do(2, "blocks where others do not")) {
    MPI_Barrier(copy);
  } else if (Do(2, "another nonblocking call")) {
    MPI_Ibcast(&in, 1, MPI_INT, 0, copy, &r[1]);
  } else {
    if (Do(2, "stuck before a second Ibarrier")) pause();
    MPI_Ibarrier(copy, &r[1]);
  }
  if (Do(2, "stuck in a receive")) MPI_Recv(&in, 1, MPI_INT, 0, 9, copy, MPI_STATUS_IGNORE);
  if (strcmp(what, "stuck in a receive") == 0) MPI_Barrier(copy);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  if (strcmp(what, "stuck after a call") == 0) {
    MPI_Iallreduce(&rank, &in, 1, MPI_INT, MPI_SUM, copy, &r[0]);
    if (rank == 0) pause();
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  }
  MPI_Ibarrier(copy, &r[0]);
  if (Do(1, "stuck behind an Ibarrier")) pause();
  MPI_Allreduce(MPI_IN_PLACE, &in, 1, MPI_INT, MPI_SUM, copy);
  MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  MPI_Comm_free(&copy);
}

int main(int argc, char** argv) {
  int data[64] = {0}, sum = 0;
  MPI_Comm half, copy, host, made;
  MPI_Group group;
  what = argc > 1 ? argv[1] : "healthy";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  SetUp();
  if (strcmp(what, "serves requests") == 0) {
    Serve(argc > 2 ? atoi(argv[2]) : 8);
    printf("rank %d served\n", rank);
  }
  MakeBlockingCalls(MPI_COMM_WORLD);
  if (Do(3, "late to a split")) pause();
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Comm_create(MPI_COMM_WORLD, group, &made);
  MPI_Group_free(&group);
  MakeBlockingCalls(half);
  MakeBlockingCalls(copy);
  MakeBlockingCalls(host);
  MakeBlockingCalls(made);
  MakeBlockingCalls(MPI_COMM_SELF);
  MakeNonblockingCalls(copy);
  MakeNonblockingCalls(MPI_COMM_SELF);
  Messages(copy);
  MakeCommunicators();
  Nonblocking();

  if (Do(2, "stuck")) pause();
  if (Do(2, "exit") || Do(2, "kill")) {
    usleep(500000); /* the others wait already */
    if (Do(2, "exit")) _exit(7);
    abort();
  }
  if (Do(2, "another call")) {
    MPI_Bcast(data, 1, MPI_INT, 0, MPI_COMM_WORLD);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (Do(1, "stuck in the half")) pause();
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
  MPI_Bcast(data, Do(1, "another size") ? 32 : 64, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  if (Do(0, "never finalizes")) pause();
  MPI_Comm_free(&half);
  MPI_Comm_free(&made);
  MPI_Finalize();
  if (rank == 0) printf("sum %d\n", sum);
  return 0;
}

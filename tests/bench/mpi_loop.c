// SPDX-License-Identifier: Apache-2.0
/* Sends itself messages, and prints the least CPU time of each kind of call: see mpi_cost.py. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

enum { kCalls = 200000, kRounds = 9 };

static int out = 1, in;
static MPI_Request r[2];

static void Nonblocking(void) {
  MPI_Irecv(&in, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &r[0]);
  MPI_Isend(&out, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &r[1]);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
}

static void Blocking(void) {
  MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void FailedTest(void) {
  int flag;
  MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
}

static double Measure(void (*call)(void)) {
  double least = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    for (int i = 0; i < kCalls; ++i) call();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    const double ns = (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec);
    if (ns < least) least = ns;
  }
  return least / kCalls;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const double nonblocking = Measure(Nonblocking), blocking = Measure(Blocking);
  MPI_Irecv(&in, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, &r[0]);
  const double test = Measure(FailedTest);
  MPI_Send(&out, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
  MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  printf("Irecv, Isend and Waitall %.0f ns, Sendrecv %.0f ns, a failed Test %.0f ns\n", nonblocking,
         blocking, test);
  MPI_Finalize();
  return 0;
}

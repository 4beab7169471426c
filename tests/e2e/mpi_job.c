/* An MPI job of which one rank goes wrong, after a few rounds that are right.
 *
 *     mpirun -n 4 mpi_job WHAT
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
static const char* what;

/* Whether this rank shall do that now. */
static int Do(int who, const char* name) { return rank == who && strcmp(what, name) == 0; }

/* Every collective that is recorded, on one communicator. */
static void AllOf(MPI_Comm comm) {
  int ranks, one = 1, all[64], some[64], counts[64], places[64];
  MPI_Comm_size(comm, &ranks);
  for (int i = 0; i < ranks; ++i) {
    counts[i] = 1;
    places[i] = i;
    some[i] = i;
  }
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
}

int main(int argc, char** argv) {
  int data[64] = {0}, sum = 0;
  MPI_Comm half, copy, host, made;
  MPI_Group group;
  what = argc > 1 ? argv[1] : "healthy";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  AllOf(MPI_COMM_WORLD);
  if (Do(3, "late to a split")) pause();
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Comm_create(MPI_COMM_WORLD, group, &made);
  MPI_Group_free(&group);
  AllOf(half);
  AllOf(copy);
  AllOf(host);
  AllOf(made);
  AllOf(MPI_COMM_SELF);

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

// SPDX-License-Identifier: Apache-2.0
/* An MPI job in which one rank makes a mistake with messages, after some rounds without one.
 *
 *     mpirun -n 4 mpi_messages WHAT [fixed]
 *
 * "fixed": the same job without the mistake.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kLarge = 1 << 20, kTags = 300 };

static int rank, size, wrong;
static const char* what;
static char large[2][kLarge];

static int Is(const char* name) { return strcmp(what, name) == 0; }

/* Where the rank at fault stays. */
static void Forget(void) {
  for (;;) pause();
}

static void SendInt(int to, int tag) { MPI_Send(&rank, 1, MPI_INT, to, tag, MPI_COMM_WORLD); }
static int RecvInt(int from, int tag) {
  int value = -1;
  MPI_Recv(&value, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return value;
}

/* Every kind of call, around a ring. */
static void Round(MPI_Comm comm) {
  MPI_Request r[4];
  MPI_Status status;
  MPI_Message message;
  int next = (rank + 1) % size, before = (rank + size - 1) % size, value = rank, got, flag = 0;
  MPI_Sendrecv(&rank, 1, MPI_INT, next, 1, &got, 1, MPI_INT, before, 1, comm, &status);
  MPI_Sendrecv_replace(&value, 1, MPI_INT, next, 2, MPI_ANY_SOURCE, 2, comm, MPI_STATUS_IGNORE);
  MPI_Irecv(large[0], kLarge, MPI_CHAR, before, 3, comm, &r[0]);
  MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &r[1]);
  MPI_Isend(large[1], kLarge, MPI_CHAR, next, 3, comm, &r[2]);
  MPI_Isend(&rank, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &r[3]);
  MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
  MPI_Isend(&rank, 1, MPI_INT, next, 4, comm, &r[0]);
  MPI_Probe(before, 4, comm, &status);
  MPI_Recv(&got, 1, MPI_INT, status.MPI_SOURCE, 4, comm, MPI_STATUS_IGNORE);
  MPI_Issend(&rank, 1, MPI_INT, next, 5, comm, &r[1]);
  MPI_Mprobe(MPI_ANY_SOURCE, 5, comm, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  MPI_Irecv(&got, 1, MPI_INT, before, 6, comm, &r[2]);
  MPI_Send(&rank, 1, MPI_INT, next, 6, comm);
  for (int i = 0; i < 3; ++i) MPI_Waitany(3, r, &value, MPI_STATUS_IGNORE);
  MPI_Send(&rank, 1, MPI_INT, MPI_PROC_NULL, 7, comm);
  MPI_Recv(&got, 1, MPI_INT, MPI_PROC_NULL, 7, comm, &status);
  MPI_Irecv(&got, 1, MPI_INT, before, 8, comm, &r[0]);
  MPI_Isend(&rank, 1, MPI_INT, next, 8, comm, &r[1]);
  while (!flag) MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE);
}

/* More tags than the library counts one by one. */
static void ManyTags(void) {
  int next = (rank + 1) % size, before = (rank + size - 1) % size, got;
  for (int tag = 100; tag < 100 + kTags; ++tag) {
    MPI_Sendrecv(&rank, 1, MPI_INT, next, tag, &got, 1, MPI_INT, before, tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }
}

/* Rank 1 waits for a message of rank 2, which does something else. */
static void RecvWithoutSend(void) {
  if (rank == 2) {
    if (wrong) Forget();
    SendInt(1, 7);
  }
  if (rank == 1) RecvInt(2, 7);
}

/* Rank 0 sends to rank 3 instead of to rank 1. */
static void SendToTheWrongRank(void) {
  if (rank == 0) SendInt(wrong ? 3 : 1, 7);
  if (rank == 1) RecvInt(0, 7);
}

static void AnotherTag(void) {
  if (rank == 0) MPI_Ssend(&rank, 1, MPI_INT, 1, wrong ? 8 : 7, MPI_COMM_WORLD);
  if (rank == 1) RecvInt(0, 7);
}

/* All send first. */
static void RingOfSends(void) {
  int next = (rank + 1) % size, before = (rank + size - 1) % size;
  if (!wrong && rank % 2 == 0) RecvInt(before, 7);
  MPI_Ssend(&rank, 1, MPI_INT, next, 7, MPI_COMM_WORLD);
  if (wrong || rank % 2 != 0) RecvInt(before, 7);
}

/* An exchange with all others, of which rank 2 leaves out one message. */
static void OneRequestUnserved(void) {
  MPI_Request r[16];
  int n = 0, got[8];
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank) MPI_Irecv(&got[peer], 1, MPI_INT, peer, 7, MPI_COMM_WORLD, &r[n++]);
  }
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank || (wrong && rank == 2 && peer == 3)) continue;
    MPI_Isend(&rank, 1, MPI_INT, peer, 7, MPI_COMM_WORLD, &r[n++]);
  }
  MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
  if (wrong && rank == 2) Forget();
}

/* A large message to a rank that does not receive it, beside a small one that is done at once. */
static void SendWithoutRecv(void) {
  MPI_Request r[2];
  if (rank == 1) {
    MPI_Isend(&rank, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &r[0]);
    MPI_Isend(large[1], kLarge, MPI_CHAR, 3, 7, MPI_COMM_WORLD, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  }
  if (rank == 3) {
    if (wrong) Forget();
    MPI_Recv(large[0], kLarge, MPI_CHAR, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

/* Rank 0 waits for two results of each other rank; rank 3 leaves after its first. */
static void WorkerLeaves(void) {
  for (int i = 0; rank == 0 && i < 2 * (size - 1); ++i) {
    int from = RecvInt(MPI_ANY_SOURCE, MPI_ANY_TAG);
    SendInt(from, 8);
  }
  for (int i = 0; rank != 0 && i < (wrong && rank == 3 ? 1 : 2); ++i) {
    SendInt(0, 7 + i);
    RecvInt(0, 8);
  }
  if (wrong && rank == 3) MPI_Finalize(), exit(0);
}

/* Rank 1 asks in a loop whether a message has come, and does nothing else. */
static void TestLoop(void) {
  MPI_Request request;
  int got, flag = 0;
  if (rank == 2 && wrong) Forget();
  if (rank == 2) SendInt(1, 7);
  if (rank != 1) return;
  MPI_Irecv(&got, 1, MPI_INT, 2, 7, MPI_COMM_WORLD, &request);
  while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

static void SleepyProbeLoop(void) {
  int flag = 0;
  if (rank == 2 && wrong) Forget();
  if (rank == 2) SendInt(1, 7);
  if (rank != 1) return;
  while (!flag) {
    MPI_Iprobe(2, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    usleep(20000);
  }
  RecvInt(2, 7);
}

static void BarrierLoop(void) {
  MPI_Request request;
  int flag = 0;
  if (rank == 2 && wrong) Forget();
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

/* All but rank 2 work, and look from time to time whether that one wants them to stop. */
static void WorkBetweenTests(void) {
  MPI_Request request;
  int got, flag = 0;
  if (rank == 2) sleep(7);
  for (int peer = 0; rank == 2 && peer < size; ++peer) {
    if (peer != rank) SendInt(peer, 7);
  }
  if (rank == 2) return;
  MPI_Irecv(&got, 1, MPI_INT, 2, 7, MPI_COMM_WORLD, &request);
  while (!flag) {
    for (volatile int i = 0; i < 3000000; ++i) {
    }
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  }
}

/* Persistent requests around a ring, of which rank 2 starts one too few. */
static void Persistent(void) {
  MPI_Request r[2];
  int next = (rank + 1) % size, before = (rank + size - 1) % size, got;
  MPI_Recv_init(&got, 1, MPI_INT, before, 7, MPI_COMM_WORLD, &r[0]);
  MPI_Send_init(&rank, 1, MPI_INT, next, 7, MPI_COMM_WORLD, &r[1]);
  for (int i = 0; i < 10; ++i) {
    if (wrong && i == 7 && rank == 2) Forget();
    if (i % 2 == 0) {
      MPI_Startall(2, r);
      MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    } else {
      MPI_Start(&r[0]);
      MPI_Start(&r[1]);
      MPI_Wait(&r[1], MPI_STATUS_IGNORE);
      MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    }
  }
  MPI_Request_free(&r[0]);
  MPI_Request_free(&r[1]);
}

/* MPI 4: persistent collectives and big counts. */
static void PersistentBarrier(void) {
#if MPI_VERSION >= 4
  MPI_Request request;
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int i = 0; i < 10; ++i) {
    if (wrong && i == 7 && rank == 2) Forget();
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
#endif
}

static void BigCounts(void) {
#if MPI_VERSION >= 4
  int value = 1, got;
  MPI_Bcast_c(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 2) {
    if (wrong) Forget();
    MPI_Send_c(&rank, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
  }
  if (rank == 1) MPI_Recv_c(&got, 1, MPI_INT, 2, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#endif
}

/* A pool: rank 2 works for long, the others wait for rank 0, and rank 0 for any of them. */
static void Pool(void) {
  if (rank == 0) {
    for (int i = 1; i < size; ++i) RecvInt(MPI_ANY_SOURCE, 7);
    for (int i = 1; i < size; ++i) SendInt(i, 8);
  } else {
    if (rank == 2) sleep(6);
    SendInt(0, 7);
    RecvInt(0, 8);
  }
}

static void Work(int seconds) {
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec - begin.tv_sec < seconds);
}

static void* ReceiveFrom2(void* unused) {
  RecvInt(2, 7);
  return unused;
}

/* A thread waits for rank 2 while the main thread works; or the main thread waits for that thread.
 */
static void Listener(void) {
  pthread_t thread;
  if (rank == 2) {
    if (wrong) Forget();
    Work(6);
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank) SendInt(peer, 7);
    }
    return;
  }
  pthread_create(&thread, NULL, ReceiveFrom2, NULL);
  if (!wrong) Work(6);
  pthread_join(thread, NULL);
}

/* Rank 3 waits for work that rank 0 gives it late: it goes on with the others first. */
static void BusyMaster(void) {
  if (rank == 3) RecvInt(0, 7);
  for (int round = 0; rank != 3 && round < 60; ++round) {
    int next = (rank + 1) % 3, before = (rank + 2) % 3, got;
    usleep(100000);
    MPI_Sendrecv(&rank, 1, MPI_INT, next, 8, &got, 1, MPI_INT, before, 8, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }
  if (rank == 0 && wrong) Forget();
  if (rank == 0) SendInt(3, 7);
}

/* Small messages that nobody has asked for yet, and one that is given up. */
static void Early(void) {
  MPI_Request request;
  int got, next = (rank + 1) % size, before = (rank + size - 1) % size;
  for (int i = 0; i < 10; ++i) SendInt(next, 20);
  MPI_Barrier(MPI_COMM_WORLD);
  sleep(4);
  for (int i = 0; i < 10; ++i) RecvInt(before, 20);
  MPI_Irecv(&got, 1, MPI_INT, before, 21, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static const struct {
  const char* name;
  void (*run)(void);
} kJobs[] = {{"recv without send", RecvWithoutSend},
             {"send to the wrong rank", SendToTheWrongRank},
             {"another tag", AnotherTag},
             {"ring of sends", RingOfSends},
             {"one request unserved", OneRequestUnserved},
             {"send without recv", SendWithoutRecv},
             {"worker leaves", WorkerLeaves},
             {"test loop", TestLoop},
             {"sleepy probe loop", SleepyProbeLoop},
             {"barrier loop", BarrierLoop},
             {"work between tests", WorkBetweenTests},
             {"persistent", Persistent},
             {"persistent barrier", PersistentBarrier},
             {"big counts", BigCounts},
             {"pool", Pool},
             {"listener", Listener},
             {"busy master", BusyMaster},
             {"early", Early}};

int main(int argc, char** argv) {
  MPI_Comm copy;
  int threads;
  what = argc > 1 ? argv[1] : "";
  wrong = argc <= 2;
  if (Is("listener")) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
  } else {
    MPI_Init(&argc, &argv);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  for (int i = 0; i < 20; ++i) Round(i % 2 == 0 ? MPI_COMM_WORLD : copy);
  if (getenv("MANY_TAGS") != NULL) ManyTags();
  for (size_t i = 0; i < sizeof(kJobs) / sizeof(kJobs[0]); ++i) {
    if (Is(kJobs[i].name)) kJobs[i].run();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_free(&copy);
  MPI_Finalize();
  if (rank == 0) printf("done\n");
  return 0;
}

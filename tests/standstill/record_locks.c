// SPDX-License-Identifier: Apache-2.0
// Ranks 0 and 1 lock two records of a file in two orders. The kernel finds no deadlock among such
// locks (F_OFD_SETLKW). Rank 2 waits for the first record.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "ranks.h"

static void SetLock(int file, int record, int type) {
  struct flock lock = {
      .l_type = (short)type, .l_whence = SEEK_SET, .l_start = record * 64, .l_len = 64};
  Check(fcntl(file, F_OFD_SETLKW, &lock) == 0, "fcntl");  // hangs: record_locks
}

// Ranks 0 and 1 each wait until the other one has its first record.
static void MeetWithOneLockEach(int rank) {
  const char* const files[] = {"locked-0", "locked-1"};
  if (rank < 2) close(open(files[rank], O_WRONLY | O_CREAT, 0600));
  WaitForFile(files[0]);
  WaitForFile(files[1]);
}

static void Move(const struct Arguments* args, int file, int from, int to) {
  SetLock(file, from, F_WRLCK);
  if (!args->fixed) MeetWithOneLockEach(args->rank);
  Compute(args->pause / args->ranks);
  SetLock(file, to, F_WRLCK);
  SetLock(file, to, F_UNLCK);
  SetLock(file, from, F_UNLCK);
  Sleep(0.02);
}

int main(int argc, char** argv) {
  const struct Arguments args = ParseArguments(argc, argv);
  const int file = open("records", O_RDWR | O_CREAT, 0600);
  Check(file >= 0, "records");
  for (int round = 0; round < args.rounds; ++round) {
    const int reversed = args.rank == 1 && !args.fixed;
    if (args.rank == 2 && !args.fixed) MeetWithOneLockEach(args.rank);
    Move(&args, file, reversed, !reversed);
  }
  return Done(&args);
}

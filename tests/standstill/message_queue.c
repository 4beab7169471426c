// SPDX-License-Identifier: Apache-2.0
// Rank 0 gives the message of rank 1 the number of rank 2. Rank 1 waits for it in a System V
// message queue, rank 0 waits there for the answer of rank 1, and rank 2 for its next message.
#include <sys/ipc.h>
#include <sys/msg.h>

#include "ranks.h"

enum { kAnswer = 100, kTextSize = 16 };

struct Page {
  int queue;
};

struct Message {
  long type;
  char text[kTextSize];
};

static void SetUp(void* memory, const struct Arguments* args) {
  struct Page* page = memory;
  (void)args;
  page->queue = msgget(IPC_PRIVATE, 0600);
  Check(page->queue >= 0, "msgget");
}

static void Send(int queue, long type) {
  const struct Message message = {type, "step"};
  Check(msgsnd(queue, &message, kTextSize, 0) == 0, "msgsnd");
}

static void Receive(int queue, long type) {
  struct Message message;
  const ssize_t size = msgrcv(queue, &message, kTextSize, type, 0);  // hangs: message_queue
  Check(size >= 0, "msgrcv");
}

static void Lead(const struct Arguments* args, int queue) {
  for (int round = 0; round < args->rounds; ++round) {
    for (int rank = 1; rank < args->ranks; ++rank) {
      Send(queue, round == 3 && rank == 1 && !args->fixed ? 2 : rank);
    }
    Compute(args->pause);
    for (int rank = 1; rank < args->ranks; ++rank) {
      Receive(queue, kAnswer + rank);  // hangs: message_queue
    }
  }
}

static void Follow(const struct Arguments* args, int queue) {
  for (int round = 0; round < args->rounds; ++round) {
    Receive(queue, args->rank);
    Send(queue, kAnswer + args->rank);
  }
}

int main(int argc, char** argv) {
  const struct Arguments args = ParseArguments(argc, argv);
  const struct Page* page = SharedPage(&args, sizeof(*page), SetUp);
  if (args.rank == 0) {
    Lead(&args, page->queue);
  } else {
    Follow(&args, page->queue);
  }
  return Done(&args);
}

// SPDX-License-Identifier: Apache-2.0
// A program without NCCL, for a static link and for a file that gives the rights of its owner.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
  printf("as %d for %d, preloaded: %s\n", (int)geteuid(), (int)getuid(),
         getenv("LD_PRELOAD") != 0 && geteuid() != getuid() ? "named" : "-");
  return 7;
}

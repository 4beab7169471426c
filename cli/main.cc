// SPDX-License-Identifier: Apache-2.0
// rollcall: the command line.
#include "base/loose_threads.h"
#include "base/name_service.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  rollcall::UseBuiltInNameServices();
  return rollcall::LeaveProcess(rollcall::Main(argc, argv));
}

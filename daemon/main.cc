// SPDX-License-Identifier: Apache-2.0
#include "base/name_service.h"
#include "base/threads.h"
#include "daemon/program.h"

int main(int argc, char** argv) {
  rollcall::UseBuiltInNameServices();
  return rollcall::LeaveProcess(rollcall::RunDaemon(argc, argv));
}

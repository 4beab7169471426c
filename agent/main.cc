// SPDX-License-Identifier: Apache-2.0
#include "agent/program.h"
#include "base/name_service.h"
#include "base/threads.h"

int main(int argc, char** argv) {
  rollcall::UseBuiltInNameServices();
  return rollcall::LeaveProcess(rollcall::RunAgent(argc, argv));
}

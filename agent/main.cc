// SPDX-License-Identifier: Apache-2.0
#include "agent/program.h"
#include "base/loose_threads.h"
#include "base/name_service.h"

int main(int argc, char** argv) {
  rollcall::UseBuiltInNameServices();
  return rollcall::LeaveProcess(rollcall::RunAgent(argc, argv));
}

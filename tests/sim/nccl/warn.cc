// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nccl/warn.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mutex>

namespace rollcall::sim {
namespace {

std::mutex mutex;
char last_warning[1024];

bool Prints() {
  const char* level = getenv("NCCL_DEBUG");
  return level != nullptr && strcmp(level, "VERSION") != 0;
}

}  // namespace

ncclResult_t Warn(ncclResult_t result, const char* format, ...) {
  std::lock_guard lock(mutex);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last_warning, sizeof(last_warning), format, arguments);
  va_end(arguments);
  if (Prints()) printf("[%d] NCCL WARN (simulated) %s\n", static_cast<int>(getpid()), last_warning);
  return result;
}

const char* LastWarning() { return last_warning; }

}  // namespace rollcall::sim

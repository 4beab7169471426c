// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/cuda/entry.h"

#include <stdlib.h>

#include <string>

namespace rollcall::sim {

bool ToldToFail(const char* function) {
  const char* list = getenv("ROLLCALL_SIM_FAIL");
  if (list == nullptr) return false;
  return ("," + std::string(list) + ",").find("," + std::string(function) + ",") !=
         std::string::npos;
}

}  // namespace rollcall::sim

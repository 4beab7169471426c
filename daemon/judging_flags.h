// SPDX-License-Identifier: Apache-2.0
// The flags that define a hang: --hang-after and --watch of rollcalld and `rollcall run`.
#pragma once

#include <string>

#include "daemon/daemon.h"

namespace CLI {
class App;
}

namespace rollcall {

struct JudgingFlags {
  std::string hang_after = "60s";
  std::string watch = "all";

  Limits limits() const;
};

// `*flags` must outlive the parsing of the flags.
void AddJudgingFlags(CLI::App* app, JudgingFlags* flags);

}  // namespace rollcall

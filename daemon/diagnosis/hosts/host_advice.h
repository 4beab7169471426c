// SPDX-License-Identifier: Apache-2.0
// What to do about a host: one table. docs/host_facts.md shows it.
#pragma once

#include <vector>

#include "daemon/model/verdict.h"

namespace rollcall {

struct HostAdviceEntry {
  const char* id;  // as in incident.json; never changes
  const char* why;
  // The text contains commands to type. $h: the host; $s: the subject; $p: the pid; $c: the command
  // that shows the state of a network card.
  const char* text;
};

const std::vector<HostAdviceEntry>& HostAdvice();

// Puts the advice for the gravest evidence about hosts before the advice of the verdict.
void AddHostAdvice(Verdict* verdict);

}  // namespace rollcall

// What to do about a verdict: one table from patterns to advice.
#pragma once

#include <vector>

#include "daemon/model/verdict.h"

namespace rollcall {

// The most fitting first; never empty.
std::vector<Advice> AdviceFor(const Verdict& verdict);

}  // namespace rollcall

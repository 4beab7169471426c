// SPDX-License-Identifier: Apache-2.0
// The sentence of a verdict, complete: what the culprits are doing, what is wrong, who waits, and
// in which step. WriteSummary() (daemon/words/sentences.h) has the words for what is wrong.
#pragma once

#include <cstddef>
#include <string>

#include "daemon/model/verdict.h"

namespace rollcall {

// "rank 0 is in `step` (train.py:31), rank 1 is in `evaluate` (train.py:57): rank 0 (node-17, pid
// 4121) called AllReduce(...) where rank 1 ...; 2 ranks have waited 48 s in step 812 (of period 37
// calls)". At most kLongestSentence bytes: who waits always stays. `period`: of LearnStep(); 0 if
// it learned none.
std::string Summarize(const Verdict& verdict, size_t period);

}  // namespace rollcall

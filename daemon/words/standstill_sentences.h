// SPDX-License-Identifier: Apache-2.0
// The sentence of a job that stands still outside of recorded calls.
#pragma once

#include <string>

#include "daemon/model/verdict.h"

namespace rollcall {

std::string StandstillSentence(const Verdict& verdict);

}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
// The sentence on ranks that wait for each other before the first NCCL call.
#pragma once

#include <string>

#include "daemon/model/verdict.h"

namespace rollcall {

std::string StartSentence(const Verdict& v);

}  // namespace rollcall

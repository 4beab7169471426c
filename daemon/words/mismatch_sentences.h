// SPDX-License-Identifier: Apache-2.0
// The sentences on ranks that contradict each other.
#pragma once

#include <string>

#include "daemon/model/verdict.h"

namespace rollcall {

// Other calls, or calls with other arguments.
std::string MismatchSentence(const Verdict& v);

// A send or receive whose other end is absent or differs.
std::string UnmatchedP2pSentence(const Verdict& v);

// The change after which the histories agree again; "" if there is no simple one.
struct Alignment;
std::string DivergenceInWords(const Alignment& alignment);

}  // namespace rollcall

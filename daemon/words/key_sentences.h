// SPDX-License-Identifier: Apache-2.0
// Sentences on ranks that wait for a key of a store.
#pragma once

#include <string>

#include "daemon/model/verdict.h"

namespace rollcall {

// Returns the sentence of any cause but a deadlock.
std::string KeySentence(const Verdict& v);

std::string KeyEdgeInWords(const WaitEdge& edge);

}  // namespace rollcall

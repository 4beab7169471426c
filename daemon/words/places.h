// SPDX-License-Identifier: Apache-2.0
// Where ranks stand in their program, in words.
#pragma once

#include <string>

#include "daemon/model/verdict.h"

namespace rollcall {

// "`upload_checkpoint` (train.py:31), waiting in Queue.get"; "" if the line is not known.
std::string PlaceInWords(const StackPlace& place);

// What the culprit does and the others do not: "rank 0 alone calls DTensor.full_tensor in
// `weight_norms`, a rank that waits is in `train_step`". "" unless one line is known of each side,
// and the two differ.
std::string DepartureInWords(const Verdict& verdict);

// Returns the beginning of a sentence on the culprits. It leads with what they are doing, and a
// verb follows: "rank 3 (node-17, pid 4121) is in `validate` (train.py:212) and". Culprits at
// different lines: "rank 2 is in ..., rank 3 is in ...: ranks 2-3 (node-17)". `who` names all
// culprits, and is the whole beginning if no line is known.
std::string BeginWithPlaces(const Verdict& verdict, const std::string& who);

}  // namespace rollcall

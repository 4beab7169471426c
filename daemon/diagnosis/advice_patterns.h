// SPDX-License-Identifier: Apache-2.0
// What the tables of advice look for in a verdict.
//
// What a rank does shows in its stack; the shape of the calls is only a guess. So a pattern of
// calls asks PlacesAreKnown() where a stack would contradict it.
#pragma once

#include <initializer_list>

#include "daemon/model/verdict.h"
#include "daemon/model/waits/wait_frames.h"

namespace rollcall {

using AdviceWords = std::initializer_list<const char*>;

inline bool Is(const Verdict& v, Cause cause) { return v.cause == cause; }

bool HasField(const Verdict& v, const char* field);
bool AnyCulprit(const Verdict& v, bool (*is)(const Culprit&));

// The culprits are alive but not inside the call that the others wait in.
bool IsAbsence(const Verdict& v);

// All ranks are in the call, and nothing that Rollcall sees holds one of them up.
bool StallsAlone(const Verdict& v);

// The culprits are inside a call that waits for other ranks, of whatever library.
bool WaitsForRanks(const Verdict& v);

// Stacks show where a culprit stands.
bool PlacesAreKnown(const Verdict& v);
// A function of a culprit's own thread has one of these words in its name. Without lines: a
// function of any of its threads.
bool CulpritIsIn(const Verdict& v, AdviceWords words);
// Checks the same for the waiting rank whose stack is known.
bool WaiterIsIn(const Verdict& v, AdviceWords words);
bool AbsentIsIn(const Verdict& v, AdviceWords words);
// The same for the functions of a wait (wait_frames.def).
bool CulpritIsIn(const Verdict& v, waits::Kind wait);
bool WaiterIsIn(const Verdict& v, waits::Kind wait);
bool AbsentIsIn(const Verdict& v, waits::Kind wait);

// Both sides made the call from one line of the program. Two lines are two calls, whose arguments
// have no reason to agree.
bool IsOneLine(const Verdict& v);
// The same, or the lines are not known.
bool MayBeOneLine(const Verdict& v);

// True if one side calls `a` and the other side calls `b`.
bool Meets(const Verdict& v, Op a, Op b);
// PyTorch's barrier on NCCL is an all-reduce of one element.
bool MeetsBarrier(const Verdict& v);
bool Creates(const Verdict& v);

// The numbers that PyTorch gives to the groups of gloo which the ranks make differ.
bool NumbersOutOfStep(const Verdict& v);
// The calls show that the culprit has left out the creation of another communicator, or has passed
// another one to its usual call: where it stands in its program tells less.
bool ShowsTheWrongGroup(const Verdict& v);

}  // namespace rollcall

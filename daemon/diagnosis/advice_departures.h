// SPDX-License-Identifier: Apache-2.0
// How the culprits depart from the other ranks, by the stacks of both sides: what one side does
// that the other does not, and on which side of the training loop each stands.
#pragma once

#include "daemon/model/verdict.h"

namespace rollcall {

bool SyncsMetric(const Verdict& v);
bool ClipsGradients(const Verdict& v);
bool GathersState(const Verdict& v);
bool SynchronizesBuffers(const Verdict& v);
bool Validates(const Verdict& v);

// True of both, where the comparison of their stacks shows it, whatever the culprit does there.
bool LeftTheLoopByStacks(const Verdict& v);
bool SkippedByStacks(const Verdict& v);

// The culprit waits in a message, the others wait in a call, and it has not gone past that.
bool WaitsForAMessageAlone(const Verdict& v);

// The culprit handles an exception that the waiting rank does not, or has ended its program by one
// and lives on. Where the interpreter's memory is not known: it is in an except, a finally or an
// __exit__() of its program that the waiting rank is not in.
bool HandlesAnException(const Verdict& v);
// The interpreter, and not only the lines of the stack, shows that exception.
bool KnowsTheException(const Verdict& v);

// The culprit is behind the training loop and the others are in it, or the reverse.
bool LeftTheLoop(const Verdict& v);
// The culprit, a worker of an inference engine, is not in the loop that runs the model for each
// batch.
bool LeftTheEnginesLoop(const Verdict& v);
// A rank at `place` is in a loop of the program that the waiting one is not in.
bool IsInALoopOfItsOwn(const Verdict& v, const StackPlace& place);
// The culprit makes a call beside its training step that the others do not make.
bool CallsAlone(const Verdict& v);
// The culprit is in its training step, and the others make a call that it has left out.
bool LeavesACallOut(const Verdict& v);

}  // namespace rollcall

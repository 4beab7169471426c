// SPDX-License-Identifier: Apache-2.0
// The wrappers of group calls.
#include "interpose/calls/observe_group.h"
#include "interpose/real.h"

extern "C" ROLLCALL_EXPORT ncclResult_t ncclGroupStart() {
  return rollcall::ObserveGroupStart(ROLLCALL_REAL(ncclGroupStart));
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclGroupEnd() {
  return rollcall::ObserveGroupEnd(ROLLCALL_REAL(ncclGroupEnd), rollcall::Op::kGroupEnd, true);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo) {
  return rollcall::ObserveGroupEnd(ROLLCALL_REAL(ncclGroupSimulateEnd),
                                   rollcall::Op::kGroupSimulateEnd, false, simInfo);
}

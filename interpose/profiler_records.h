// SPDX-License-Identifier: Apache-2.0
// Records what NCCL tells the profiler's plugin (profiler_plugin.h), as the wrappers record calls.
//
// For the plugin's functions alone, on the thread on which NCCL calls them. The same rules as in
// call_record.h: nothing here allocates, locks or waits.
#pragma once

#include "interpose/local_comm.h"
#include "interpose/profiler_abi.h"

namespace rollcall {

// A call within a group whose begin NCCL told (version 5), or alone.
void RecordCollApi(LocalComm* comm, const profiler::CollApi& call);
void RecordColl(LocalComm* comm, const profiler::Coll& call);
void RecordP2p(LocalComm* comm, const profiler::P2p& call);

// A group begins on this thread.
void OpenGroup();

// The host may wait for peers from here on, until the group has ended.
void BeginGroupEnd();

void FinishGroup();

}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
// Records the events that NCCL reports to the profiler plugin (profiler_plugin.h), as the wrappers
// record calls.
//
// The functions of the plugin use this, on the thread on which NCCL calls them. As in
// call_record.h, nothing here allocates, locks or waits.
#pragma once

#include "interpose/calls/profiler_abi.h"
#include "interpose/local_comm.h"

namespace rollcall {

// Records a call, in a group that OpenGroup() has opened (version 5) or alone.
void RecordCollApi(LocalComm* comm, const profiler::CollApi& call);
void RecordColl(LocalComm* comm, const profiler::Coll& call);
void RecordP2p(LocalComm* comm, const profiler::P2p& call);

// A group has begun on this thread.
void OpenGroup();

// The group's end has begun. From now on the host may wait for other ranks, until FinishGroup().
void BeginGroupEnd();

void FinishGroup();

}  // namespace rollcall

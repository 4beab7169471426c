// SPDX-License-Identifier: Apache-2.0
// UCC's requests: calls that ucc_collective_init() describes, and that begin with each post. Which
// of them are open.
//
// A request begins with its status, which the program reads without a call. So the end of a call is
// seen when a thread tests: inside ucc_context_progress(), at a post and at finalize. A status is
// read only in a call on the context of its team: the memory of the request lives as long as the
// context does.
//
// Tables of fixed sizes. Never waits, allocates or locks. All ranks hold alike many requests; a
// process with one without room is not recorded any more. An open call without room counts as done.
#pragma once

#include "interpose/record/call_record.h"
#include "interpose/ucc_api.h"

namespace rollcall {

struct UccCall {
  LocalComm* comm = nullptr;
  const void* context = nullptr;
  CallInfo info = {};
};

void DescribeUccRequest(const UccRequest* request, const UccCall& call);
// False if the request's call is not recorded.
bool FindUccRequest(const UccRequest* request, UccCall* call);
void ForgetUccRequest(const UccRequest* request);

// Records that the call at this position of its communicator is open, since these ticks.
void OpenUccCall(const UccRequest* request, const UccCall& call, uint64_t position, uint64_t since);
// Ends the open calls on the context that are done.
void EndDoneUccCalls(const void* context);
// Ends a call, or all of a context, whose status no thread may read any more.
void EndUccCall(const UccRequest* request);
void EndUccCallsOf(const void* context);

extern std::atomic<uint32_t> open_ucc_calls;
inline bool AnyOpenUccCall() { return open_ucc_calls.load(std::memory_order_relaxed) != 0; }

// The open call on the context that was posted first.
struct OldestUccCall {
  const LocalComm* comm = nullptr;  // nullptr if there is none
  uint64_t number = 0;              // 1 + its position
};
OldestUccCall FindOldestUccCall(const void* context);

}  // namespace rollcall

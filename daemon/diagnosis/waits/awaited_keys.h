// SPDX-License-Identifier: Apache-2.0
// Ranks that wait for one key of a store (PyTorch's TCPStore, FileStore).
//
// The library records the key. Who is to set it is not known: the ranks that do not wait for it may
// be, and then the wait graph goes on to what each of these waits for. PyTorch's own waits for keys
// are part of calls that make a communicator, and are judged there.
#pragma once

#include <cstddef>
#include <list>
#include <string>

#include "daemon/model/job_state.h"
#include "daemon/rules/stuck_call.h"

namespace rollcall {

// One call for each key. They point to the communicators here, which have the key as name, the hash
// of the key as id, and number their ranks as the job does.
struct KeyWaits {
  std::list<Communicator> communicators;
  std::list<StuckCall> calls;
  size_t looked_at = 0;  // ranks that the search has numbered; 0 if no rank waits for a key
};

KeyWaits FindKeyWaits(const JobState& job);

// A key by which members of a communicator find each other: "/default_pg/0//cpu//0/2".
bool IsKeyOfBackend(const std::string& key);

}  // namespace rollcall

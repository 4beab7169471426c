// SPDX-License-Identifier: Apache-2.0
// The newest calls and checkpoints of a member, in vectors of limited size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/lazy_vector.h"

namespace rollcall {

// Checkpoints of a member for each record that it keeps.
inline constexpr size_t kCheckpointsOfRecord = 4;

// A member that keeps fewer records keeps no checkpoints.
inline constexpr size_t kLeastRecords = 16;

// The size of the vector is limited anyway; doubling would nearly double it.
template <typename T>
void MakeRoom(size_t most, LazyVector<T>* values) {
  if (values->size() < values->capacity()) return;
  values->reserve(std::max(std::min(values->size() * 2, most), values->size() + 1));
}

// Keeps the newest values.
template <typename T>
void Shrink(size_t kept, LazyVector<T>* values) {
  if (values->size() > kept) values->erase(values->begin(), values->end() - kept);
  if (values->capacity() > kept + kept / 2 + 1) values->shrink_to_fit();
}

// The number of checkpoints of a member that keeps so many records.
size_t CheckpointsKept(size_t records);

// Adds checkpoints by their position, and keeps the newest `kept`.
void AddCheckpoints(const std::vector<Checkpoint>& checkpoints, size_t kept, Member* member);

// Inserts a record by its index. False if it replaced a record with the same index.
bool Insert(const CallRecord& record, LazyVector<CallRecord>* records, size_t* at_index);

// Counts a send or receive for its peer. False if the member has too many peers. The counts without
// those that there is no room for: a member may keep as much as `kept` records take. Those that it
// waits for stay, so that it is known to wait.
std::shared_ptr<const MessageCounts> LimitMessages(std::shared_ptr<const MessageCounts> counts,
                                                   size_t kept);

bool CountTraffic(const CallRecord& record, Member* member);

}  // namespace rollcall

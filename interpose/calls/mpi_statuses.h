// SPDX-License-Identifier: Apache-2.0
// Which requests a call to MPI_Wait, MPI_Test, or a variant has completed, and their statuses.
#pragma once

#include <stdint.h>

namespace rollcall {

struct Statuses {
  enum class Place : uint8_t {
    kOne,        // of one request: the only one, or the one that `indices` points to
    kByRequest,  // all are done
    kListed,     // `indices` names those that are done
  };
  Place place = Place::kOne;
  const void* first = nullptr;  // nullptr means nowhere
  const int* count =
      nullptr;  // kListed: of `indices`; a call that fails may have left it as it was
  const int* indices = nullptr;
  int requests = 0;  // of the call: `indices` has room for no more
};

// Where the status of the request at `index` is among those of the call; -1 if it is not done.
inline int FindDone(const Statuses& statuses, int index) {
  switch (statuses.place) {
    case Statuses::Place::kOne:
      return statuses.indices == nullptr || *statuses.indices == index ? 0 : -1;
    case Statuses::Place::kByRequest:
      return index;
    case Statuses::Place::kListed:
      break;
  }
  for (int i = 0; i < *statuses.count && i < statuses.requests; ++i) {
    if (statuses.indices[i] == index) return i;
  }
  return -1;
}

inline bool IsDone(const Statuses& statuses, int index) { return FindDone(statuses, index) >= 0; }

}  // namespace rollcall

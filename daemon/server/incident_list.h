// SPDX-License-Identifier: Apache-2.0
// One list of incidents out of two: those in the history, and those whose newest state is in memory
// only (they are live, or could not be saved yet). Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "rollcall/v1/query.pb.h"

namespace rollcall {

// Whether the request asks for this incident; its page does not matter.
bool IsAskedFor(const v1::Incident& incident, const v1::ListIncidentsRequest& request);

// The order of lists: newest first, ids where that does not decide.
bool ComesBefore(const v1::Incident& a, const v1::Incident& b);

// A part of the history's list, which is sorted.
struct Window {
  int64_t offset = 0;
  int64_t limit = 0;
};

// What the history must be asked for, so that Merge() can make the page. `in_memory`: how many of
// those in memory are asked for.
Window WindowFor(const v1::ListIncidentsRequest& request, int64_t in_memory);

// The request's page. `in_memory`: those that are asked for, in any order; no id of theirs is in
// `history`, which holds the window and how many there are in all.
v1::ListIncidentsResponse Merge(const v1::ListIncidentsRequest& request,
                                std::vector<v1::Incident> in_memory, const Window& window,
                                v1::ListIncidentsResponse history);

}  // namespace rollcall

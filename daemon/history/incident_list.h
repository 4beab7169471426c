// SPDX-License-Identifier: Apache-2.0
// Merges two lists of incidents: those in the history, and those with a newer state in memory
// (live, or not saved yet). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

// Whether the request's filters select this incident. Ignores its page.
bool IsSelected(const v1::Incident& incident, const v1::ListIncidentsRequest& request);

// kNotFound; says what to type.
absl::Status NoSuchIncident(const std::string& id);

// The order of lists: newest first, then by id.
bool ComesBefore(const v1::Incident& a, const v1::Incident& b);

// A part of the history's sorted list.
struct Window {
  int64_t offset = 0;
  int64_t limit = 0;
};

// The part of the history that Merge() needs for the page. `in_memory` is the number of selected
// incidents in memory.
Window WindowFor(const v1::ListIncidentsRequest& request, int64_t in_memory);

// Returns the request's page. `in_memory` are the selected incidents in memory, in any order, with
// no id that is in `history`. `history` has the window's incidents and the total number.
v1::ListIncidentsResponse Merge(const v1::ListIncidentsRequest& request,
                                std::vector<v1::Incident> in_memory, const Window& window,
                                v1::ListIncidentsResponse history);

}  // namespace rollcall

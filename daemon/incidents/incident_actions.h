// SPDX-License-Identifier: Apache-2.0
// What people add to an incident. Pure. The changed incident is what the daemon stores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

inline constexpr int kMostNotes = 20;  // of an incident
inline constexpr size_t kMostNoteBytes = 2000;

// Adds a person's words. `wall_ns`: now. kInvalidArgument: no text; kOutOfRange: the text is too
// long; kFailedPrecondition: the incident has kMostNotes.
absl::Status AddNote(const std::string& who, const std::string& text, int64_t wall_ns,
                     v1::Incident* incident);

// Records who takes care of it. Keeps an acknowledgement of the same person.
// kFailedPrecondition: another person has acknowledged it.
absl::Status Acknowledge(const std::string& who, int64_t wall_ns, v1::Incident* incident);

// Any operator may take an acknowledgement back. kFailedPrecondition: it is not acknowledged.
absl::Status TakeBackAcknowledgement(v1::Incident* incident);

}  // namespace rollcall

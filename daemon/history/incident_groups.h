// SPDX-License-Identifier: Apache-2.0
// Which hangs are alike, and how often they came back. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// "missing_rank/AllReduce/dp/train.py:validate": the root cause, the operation, the communicator's
// name and the place of most culprits, without numbers that differ from run to run. "" without a
// verdict. Neither ranks nor hosts are a part: a group counts those.
std::string SignatureOf(const v1::Incident& incident);

// Equal for incidents of one hang: the same call of the same communicator of an attempt. A daemon
// that lost its state, or a job that moved for a moment, opens a second incident for one hang.
// Unique in a tenant.
std::string HangOf(const v1::Incident& incident);

// "1st", "22nd", "113th".
std::string OrdinalInWords(int32_t number);

// Adds a hang of the incident to the group of the earlier ones, which has none of it.
void AddHang(const v1::Incident& incident, v1::IncidentGroup* group);

// "4 times, each time with a culprit on node-17"; for a list of groups.
std::string GroupInWords(const v1::IncidentGroup& group);

// "the 4th time in 7 days, each time with a culprit on node-17"; "" for one hang alone. The newest
// hang is the group's last.
std::string RecurrenceInWords(const v1::IncidentGroup& group, int days);

}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
// Incidents as lines of CSV (RFC 4180), for people with a warehouse of their own. Pure.
#pragma once

#include <string>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// The names of the columns, with the line's end. Columns are only ever added, at the end.
std::string IncidentCsvHeader();

// Times are RFC 3339 in UTC; several values of a column are separated by blanks, call sites by " |
// ".
std::string IncidentCsvLine(const v1::Incident& incident);

}  // namespace rollcall

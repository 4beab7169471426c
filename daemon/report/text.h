// SPDX-License-Identifier: Apache-2.0
// report.txt: at most 100 columns of plain text, to be pasted into a ticket.
#pragma once

#include <string>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

std::string ToText(const v1::Incident& incident);

}  // namespace rollcall

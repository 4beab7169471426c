// SPDX-License-Identifier: Apache-2.0
// report.txt: plain text of at most 100 columns, to paste into a ticket.
#pragma once

#include <string>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

std::string ToText(const v1::Incident& incident);

}  // namespace rollcall

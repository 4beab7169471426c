// SPDX-License-Identifier: Apache-2.0
// The page's view of one incident, embedded in a report: the report looks like the page, without a
// daemon or a network. If the program was built without the page, reports are complete without this
// view.
#pragma once

#include <string>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// The Content-Security-Policy of a report: allows its own styles, and no script but the page's.
std::string ReportPolicy();

// Style, data and script for the end of a report's body. "" if the program has no page. Text from
// jobs is only in the data, and cannot end the element that contains it.
std::string FrozenView(const v1::Incident& incident);

}  // namespace rollcall

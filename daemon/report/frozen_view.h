// SPDX-License-Identifier: Apache-2.0
// The page's view of an incident, frozen: a report looks like the page, from a disk and without a
// network. Reports are whole without it, where the page was not built.
#pragma once

#include <string>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// The Content-Security-Policy of a report: styles of its own, and no script but the page's.
std::string ReportPolicy();

// Style, data and script, for the end of a report's body. "" where there is no page. Text from jobs
// is data only: it cannot end the element that contains it.
std::string FrozenView(const v1::Incident& incident);

}  // namespace rollcall

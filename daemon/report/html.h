// SPDX-License-Identifier: Apache-2.0
// report.html: one file that needs no network and runs no script. Whatever came
// from the job (names, paths, symbols) is escaped.
#pragma once

#include <string>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// `with_view`: with the page's view of it, some 200 KiB.
std::string ToHtml(const v1::Incident& incident, bool with_view = true);

}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
// report.html: one file that needs no network and is complete without scripts. Escapes all text
// that comes from the job (names, paths, symbols).
#pragma once

#include <string>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// `with_view` adds the page's view of the incident, about 200 KiB.
std::string ToHtml(const v1::Incident& incident, bool with_view = true);

}  // namespace rollcall

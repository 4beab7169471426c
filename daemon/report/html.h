// report.html: one file that needs no network and runs no script. Whatever came
// from the job (names, paths, symbols) is escaped.
#pragma once

#include <string>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

std::string ToHtml(const v1::Incident& incident);

}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
// What /proc shows of one process, as the message of a look.
#pragma once

#include <string>

#include "cli/diagnose/find.h"
#include "rollcall/v1/look.pb.h"

namespace rollcall {

v1::ProcessLook ToProcessLook(const FoundProcess& found, const std::string& found_by);

// `known` with how the process runs now, and how it was started. May block: see spare_threads.h.
v1::ProcessUpdate WithProcessFacts(const std::string& proc_root, v1::ProcessUpdate known);

}  // namespace rollcall

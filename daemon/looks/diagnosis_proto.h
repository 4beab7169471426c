// SPDX-License-Identifier: Apache-2.0
// The judgement of a look as a message for the page. Pure.
#pragma once

#include <vector>

#include "daemon/looks/judge.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

// "hangs", "cannot_tell", "goes_on".
const char* OutcomeName(LookedAtJob::Outcome outcome);

// Does not set `now`. Jobs that hang first, then the unclear ones.
v1::DiagnoseResponse ToProto(std::vector<LookedAtJob> jobs, const std::vector<v1::HostLook>& looks);

}  // namespace rollcall

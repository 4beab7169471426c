// SPDX-License-Identifier: Apache-2.0
// From an agent's messages to the values of model/. proto/facts.def lists what is copied unchanged.
//
// `offset_ns` brings the agent's times onto the daemon's clock. Pure; values that cannot be are
// kept, for the model leaves them out.
#pragma once

#include <cstdint>

#include "daemon/model/job_model.h"

namespace rollcall {

namespace v1 {
class CommUpdate;
class Evidence;
class Identity;
}  // namespace v1

ProcessIdentity ToIdentity(const v1::Identity& update);
ProcessEvidence ToEvidence(const v1::Evidence& update, int64_t offset_ns);
CommProgress ToProgress(const v1::CommUpdate& update, int64_t offset_ns);

}  // namespace rollcall

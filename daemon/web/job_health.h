// SPDX-License-Identifier: Apache-2.0
// Whether a job goes on, in one line: for a readiness probe. Pure.
#pragma once

#include <string>

#include "rollcall/v1/query.pb.h"

namespace rollcall {

struct JobHealth {
  int http_status = 200;  // 503: it is hung, or has ended
  std::string line;       // "ok: running", "hung: rank 3 ..."; without a line break
};

// A suspicion may be wrong: such a job is healthy.
JobHealth HealthOf(const v1::JobStatus& job);

}  // namespace rollcall

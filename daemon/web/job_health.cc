// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/job_health.h"

#include "absl/strings/str_cat.h"
#include "base/clean_text.h"

namespace rollcall {

JobHealth HealthOf(const v1::JobStatus& job) {
  const bool is_ready = job.state() != "hung" && job.state() != "ended";
  const std::string why = job.summary().empty() ? "" : absl::StrCat(": ", CleanText(job.summary()));
  return {is_ready ? 200 : 503, absl::StrCat(is_ready ? "ok: " : "", job.state(), why)};
}

}  // namespace rollcall

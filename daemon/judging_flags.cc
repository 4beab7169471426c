// SPDX-License-Identifier: Apache-2.0
#include "daemon/judging_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/match.h"
#include "base/duration_flag.h"
#include "base/durations.h"

namespace rollcall {

Limits JudgingFlags::limits() const {
  Limits limits = LimitsFor(DurationNs(hang_after));
  limits.watches_calls_only = absl::EqualsIgnoreCase(watch, "calls");
  return limits;
}

void AddJudgingFlags(CLI::App* app, JudgingFlags* flags) {
  app->add_option("--hang-after", flags->hang_after, "a wait of this length is a hang")
      ->envname("ROLLCALL_HANG_AFTER")
      ->capture_default_str()
      ->check(CLI::Validator(CheckDuration, "TIME"));
  app->add_option(
         "--watch", flags->watch,
         "all: also judge jobs that stand still outside of recorded calls, by samples of their stacks; "
         "calls: recorded calls only")
      ->envname("ROLLCALL_WATCH")
      ->capture_default_str()
      ->check(CLI::IsMember({"all", "calls"}, CLI::ignore_case));
}

}  // namespace rollcall

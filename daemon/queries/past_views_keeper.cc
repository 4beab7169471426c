// SPDX-License-Identifier: Apache-2.0
#include "daemon/queries/past_views_keeper.h"

#include <algorithm>

#include "base/durations.h"
#include "base/steady_clock.h"
#include "base/stop_signal.h"
#include "daemon/jobs/job_store.h"
#include "daemon/jobs/timeline.h"
#include "daemon/queries/query_source.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr int64_t kApartNs = 5 * kSecond;
constexpr int64_t kShare = 20;  // a round takes one part in so many of the time

}  // namespace

void PastViewsKeeper::Run(StopSignal* stop) {
  int64_t pause_ns = kApartNs;
  while (!stop->SleepFor(pause_ns)) {
    const int64_t begun_ns = SteadyNs();
    Keep();
    pause_ns = std::max(kApartNs, kShare * (SteadyNs() - begun_ns));
  }
}

void PastViewsKeeper::Keep() {
  for (const JobKey& key : store_->jobs().NewestKeys(SIZE_MAX, Tenants::All())) {
    v1::JobRequest request;
    request.set_job(key.job);
    request.set_tenant(key.tenant);
    request.set_attempt(key.attempt);
    absl::StatusOr<v1::JobView> view = queries_->GetJob(request);
    if (!view.ok()) continue;        // it has just been forgotten
    view->clear_calls_per_second();  // minutes of it, which change all the time
    views_->Add(key, NsOf(view->now()), *view);
  }
  views_->DropOld(timeline_->ToWallTime(timeline_->Now()));
}

}  // namespace rollcall

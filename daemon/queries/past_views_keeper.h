// SPDX-License-Identifier: Apache-2.0
// Keeps the state of all jobs every few seconds, on a thread of its own. Where a round takes long,
// the rounds are further apart, so that it takes a twentieth of a core at most.
#pragma once

#include "daemon/queries/past_views.h"

namespace rollcall {

class JobStore;
class QuerySource;
class StopSignal;
class Timeline;

class PastViewsKeeper {
 public:
  // All must outlive this object. `queries`: of a caller who sees all jobs.
  PastViewsKeeper(const QuerySource* queries, const JobStore* store, Timeline* timeline,
                  PastViews* views)
      : queries_(queries), store_(store), timeline_(timeline), views_(views) {}

  // Returns when `stop` stops.
  void Run(StopSignal* stop);

  // Does one round.
  void Keep();

 private:
  const QuerySource* const queries_;
  const JobStore* const store_;
  Timeline* const timeline_;
  PastViews* const views_;
};

}  // namespace rollcall

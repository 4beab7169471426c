// SPDX-License-Identifier: Apache-2.0
// A job of four ranks and the life of its incidents, for the tests of both.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "daemon/diagnosis/life/incident_life.h"
#include "job_builder.h"

namespace rollcall {

using Kind = IncidentEvent::Kind;
using Kinds = std::vector<Kind>;

class IncidentsTest : public testing::Test {
 protected:
  IncidentsTest() { limits_.stacks_apart_ns = kSecondNs; }

  // Diagnoses the job at this time, as the daemon does in each tick.
  Kinds Look(double at) {
    events_ = life_.Update(job_.state, Diagnose(job_.state, At(at), limits_), At(at), limits_);
    Kinds kinds;
    for (const IncidentEvent& event : events_) kinds.push_back(event.kind);
    return kinds;
  }

  // Without the events that ask for more stacks.
  Kinds LookPastStacks(double at) {
    Kinds kinds = Look(at);
    kinds.erase(
        std::remove_if(kinds.begin(), kinds.end(), [](Kind kind) { return !HasNews(kind); }),
        kinds.end());
    return kinds;
  }

  void RanksWait(double at) {
    job_.Finish(24);
    job_.Enter({0, 1, 2}, At(at));
  }

  JobBuilder job_{4};
  IncidentLife life_{"train"};
  Limits limits_;
  std::vector<IncidentEvent> events_;
};

}  // namespace rollcall

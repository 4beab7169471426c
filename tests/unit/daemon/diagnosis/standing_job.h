// SPDX-License-Identifier: Apache-2.0
// A job that stands still, as samples of the stacks of its ranks show it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "job_builder.h"

namespace rollcall {

using Ranks = std::vector<int32_t>;

inline constexpr int32_t kChildPid = 9000;

struct RankPlaceOf {
  const char* functions;  // innermost first
  const char* at;
  std::vector<int32_t> other_end = {};
  EndKind end = EndKind::kNone;
};

inline StandPlace PlaceOf(const RankPlaceOf& seen) {
  StackPlace place;
  place.functions = seen.functions;
  place.at = seen.at;
  place.other_end = seen.other_end;
  place.end = seen.end;
  place.sleeps = true;
  return StandPlace(std::move(place));
}

inline const RankPlaceOf kQueue = {" __new_sem_wait_slow64 queue.Queue.get train.load ",
                                   "/x/train.py:9 in load"};
inline const RankPlaceOf kServes = {" poll selectors.select socketserver.serve_forever train.main ",
                                    "/x/train.py:70 in main"};

inline RankPlaceOf Reads(int32_t pid, const char* at = "/x/train.py:42 in receive") {
  return {" __recv train.receive train.main ", at, {pid}, EndKind::kSocket};
}

// A job of ranks without a recorded call, which have stood since second 10. Rank i has the pid
// 4000 + i.
struct StandingJob : JobBuilder {
  explicit StandingJob(const std::vector<RankPlaceOf>& places)
      : JobBuilder(static_cast<int>(places.size())) {
    state.communicators.clear();
    for (size_t i = 0; i < places.size(); ++i) {
      Process& process = state.processes[i];
      process.host = "node";
      process.has_segment = false;
      process.place = PlaceOf(places[i]);
      process.stacks_ns = At(60);
      standings.push_back(std::make_shared<Standing>());
      Standing& standing = *standings.back();
      standing.since_ns = At(10);
      standing.newest_ns = At(60);
      standing.state = 'S';
      standing.place = PlaceOf(places[i]);
      standing.newest.threads[{process.pid, process.pid}].position =
          std::hash<std::string>()(places[i].at);
      process.standing = standings.back();
    }
  }

  std::vector<Verdict> Judge(double now = 61) const { return Diagnose(state, At(now), Limits()); }

  Verdict Only() const {
    std::vector<Verdict> verdicts = Judge();
    EXPECT_EQ(verdicts.size(), 1u);
    return verdicts.empty() ? Verdict() : std::move(verdicts.front());
  }

  std::vector<std::shared_ptr<Standing>> standings;
};

inline Ranks CulpritsOf(const Verdict& verdict) {
  Ranks ranks;
  for (const Culprit& culprit : verdict.culprits) ranks.push_back(culprit.rank);
  return ranks;
}

inline void EndWell(Process* process) {
  process->liveness = Liveness::kExited;
  process->exit_code = 0;
  process->standing = nullptr;
}

}  // namespace rollcall

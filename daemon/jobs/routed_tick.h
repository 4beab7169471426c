// SPDX-License-Identifier: Apache-2.0
// A tick, and what it reports of each job.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/jobs/agent_book.h"
#include "daemon/jobs/agent_times.h"
#include "daemon/model/job_key.h"

namespace rollcall {

class StoredJob;

struct RoutedTick {
  struct Part {
    JobKey key;
    std::shared_ptr<StoredJob> job;
    struct Update {
      int index = 0;  // in Tick::processes
      AgentTimes times;
    };
    std::vector<Update> updates;
  };

  std::string host;
  AgentBook::Origin origin;
  std::vector<Part> parts;
  bool must_restart = false;  // the agent must connect again and send everything
  // Jobs that this daemon does not own: their processes were left out. By name, with the tenant
  // and job as the agent reports them.
  std::map<JobId, std::pair<std::string, std::string>> not_owned;
};

}  // namespace rollcall

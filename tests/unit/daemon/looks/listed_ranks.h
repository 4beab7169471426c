// SPDX-License-Identifier: Apache-2.0
// Lists of ranks without the library, as agents send them.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/access/agent_name.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

inline AgentName AgentOf(const std::string& host) {
  AgentName agent;
  agent.host = host;
  agent.id = "from " + host + " 1";
  return agent;
}

struct Listed {
  int32_t rank = 0;
  int32_t world_size = 4;
  std::string mark = "a";
  std::string tenant = {};
  std::string script = "train.py";
  uint32_t uid = 1000;
};

inline void AddListed(const Listed& listed, v1::UnrecordedProcesses* list) {
  v1::UnrecordedProcess* process = list->add_processes();
  process->set_pid(4000 + list->processes_size() - 1);
  process->set_start_time(77);
  process->set_found_by("RANK");
  process->set_script(listed.script);
  v1::Identity* identity = process->mutable_identity();
  identity->set_global_rank(listed.rank);
  identity->set_world_size(listed.world_size);
  identity->set_tenant(listed.tenant);
  identity->set_uid(listed.uid);
  identity->set_started_ns(1'000'000'000);
  v1::JobMark* mark = process->add_marks();
  mark->set_kind("rendezvous");
  mark->set_value(listed.mark);
}

template <typename... Ranks>
v1::UnrecordedProcesses ListOfRanks(const Ranks&... ranks) {
  v1::UnrecordedProcesses list;
  (AddListed(ranks, &list), ...);
  return list;
}

}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
// One incident as people see it, and the incidents of one job. Plain values, no lock.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/diagnosis/life/incident_life.h"
#include "daemon/incidents/awaited_stacks.h"
#include "daemon/jobs/known_hosts.h"
#include "daemon/model/job_key.h"
#include "daemon/report/stacks/stack_tree.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

struct IncidentRecord {
  v1::Incident incident;
  std::string folder;           // folder of its report; "" while there is none
  bool dirty = false;           // the report is older than the incident
  bool is_in_queue = false;     // ReportQueue has it, and has not reported a result
  bool unsaved = false;         // the history is older than the incident
  bool has_new_stacks = false;  // no verdict rests on its newest stacks yet
  bool is_over_quota = false;   // neither stored nor reported, and gone when it closes
  bool is_announced = false;    // this daemon has sent its first alert
  bool is_alert_due = false;    // its first alert waits for stacks
  int64_t confirmed_ns = 0;     // by this daemon
  int64_t said_ns = 0;          // the newest alert that asks somebody to act
  AwaitedStacks awaited;        // requested and not yet received
  StackTree rest;               // merged stacks of processes that the incident does not list
};

struct JobIncidents {
  JobIncidents(const JobKey& job, int incidents_before) : key(job), life(job, incidents_before) {}

  const JobKey key;
  IncidentLife life;
  KnownHosts hosts;
  int64_t restored_ns = 0;      // when the daemon took it from the history
  bool is_awaited = false;      // restored, and not diagnosed by this daemon yet
  bool has_returned = false;    // diagnosed by this daemon
  bool is_end_judged = false;   // an earlier daemon reported the end of the job
  bool is_abandoned = false;    // no agent has reported it for long
  bool has_made_calls = false;  // a rank has come through one
  // An earlier daemon confirmed the live incident. It may have ended before it saved the alert.
  bool may_lack_alert = false;
  v1::Incident last_closed;           // the newest of an earlier daemon, without stacks
  std::set<uint64_t> judged_ends;     // communicators whose end was judged
  std::vector<std::string> warnings;  // sentences
  std::vector<IncidentRecord> records;
  int32_t ranks = 0;  // of the job, as far as known
  uint64_t changes = 0;
  std::map<std::string, int> by_cause;
  std::map<std::string, double> hung_seconds;  // in confirmed and closed ones, by cause
};

// Returns nullptr if there is no such incident, or newer ones replaced it.
IncidentRecord* FindRecord(const std::string& incident, JobIncidents* job);
// Returns the live incident.
IncidentRecord* FindLive(JobIncidents* job);
// Finds it, or adds it in the place of the oldest of too many.
IncidentRecord* AddRecord(const std::string& incident, JobIncidents* job);

// Takes the incident as it is now, with its times by the wall clock. Keeps what people, agents and
// the daemon have added to it.
void Rewrite(const Incident& now, IncidentRecord* record);
// Counts the event among the job's.
void Count(const IncidentEvent& event, JobIncidents* job);

// Whether the waits of the incident grow without an event: it is live, and judged by this daemon.
bool Grows(const JobIncidents& job, const v1::Incident& incident);
// Takes the verdicts of a live incident as they are now.
void RefreshVerdicts(const JobIncidents& job, IncidentRecord* record);
// A copy with such verdicts.
v1::Incident AsOfNow(const JobIncidents& job, const v1::Incident& incident, bool with_stacks);

}  // namespace rollcall

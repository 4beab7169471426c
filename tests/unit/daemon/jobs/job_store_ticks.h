// SPDX-License-Identifier: Apache-2.0
// Ticks of one process, and what they make of its job, for the tests of the job store.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/model/job_key.h"
#include "daemon/model/job_state.h"
#include "interpose/segment.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {

// The job of MakeTick(), unless a test names another one.
inline const JobKey kJob("job");

// A tick with one live process that has an identity: its rank in the job is its pid.
inline v1::Tick MakeTick(int pid, const std::string& job = "job") {
  v1::Tick tick;
  v1::ProcessUpdate* process = tick.add_processes();
  process->set_pid(pid);
  process->set_start_time(1);
  process->mutable_identity()->set_job(job);
  process->mutable_identity()->set_global_rank(pid);
  process->mutable_evidence()->set_liveness(v1::Evidence::ALIVE);
  return tick;
}

// Adds a ready communicator of `size` ranks to the tick's first process, which is `rank` in it.
inline v1::CommUpdate* AddComm(v1::Tick* tick, uint64_t id, int rank, int size) {
  v1::CommUpdate* comm = tick->mutable_processes(0)->add_communicators();
  comm->set_id(id);
  comm->set_rank(rank);
  comm->set_size(size);
  comm->set_state(static_cast<uint32_t>(segment::CommState::kReady));
  return comm;
}

// Adds the records of `count` equal calls, from position `first` on, each entered 100 ns after the
// one before. A duration of -1 means that the calls have not returned.
inline void AddRecords(v1::CommUpdate* comm, uint64_t first, int count, int64_t duration = 5) {
  v1::RecordBatch* batch = comm->mutable_records();
  batch->set_first_index(first);
  for (int i = 0; i < count; ++i) {
    batch->add_position(first + static_cast<uint64_t>(i));
    batch->add_op(1);
    batch->add_dtype(7);
    batch->add_reduction(0);
    batch->add_peer(-1);
    batch->add_count(8);
    batch->add_entered_delta_ns(100);
    batch->add_duration_ns(duration);
    batch->add_stream(0);
    batch->add_caller(0);
    batch->add_thread(1);
    batch->add_group(0);
    batch->add_result(0);
    batch->add_flags(0);
  }
}

// The member of a job that has one communicator with one member. It is a part of `state`.
inline const Member& OnlyMember(const JobState& state) {
  return state.communicators.begin()->second.members.begin()->second;
}

}  // namespace rollcall

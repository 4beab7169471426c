// SPDX-License-Identifier: Apache-2.0
// Builds the update of one process for a tick.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/collector/callers.h"
#include "agent/collector/collector.h"
#include "agent/collector/process_facts.h"
#include "agent/collector/redact_update.h"
#include "agent/processes/living_threads.h"
#include "agent/processes/proc_stat.h"
#include "agent/processes/process_namespaces.h"
#include "base/durations.h"
#include "base/steady_clock.h"

namespace rollcall {
namespace {

constexpr int64_t kReadProcEvery = kSecond;
constexpr int64_t kReadTimeout = kSecond / 20;
// For calls that last longer, the collector checks that the calling thread still exists. If the
// process has a pid namespace of its own, this check reads all of its threads.
constexpr int64_t kLongCall = kSecond;
constexpr int64_t kCheckCallersEvery = 5 * kSecond;
constexpr int64_t kClocksDiffer = kSecond;  // largest error of a thread's start time

constexpr char kAtStop = 't';  // in /proc: a tracer holds the thread

// A process that has its memory long after its exit mark has not set it: a child of vfork that ends
// by exit() runs the library's exit handler in its parent's memory. One that ends gives its memory
// back after its handlers.
bool HasLivedOn(const CollectedProcess& process, const SegmentSnapshot& snapshot) {
  constexpr int64_t kLongestHandlersNs = 600 * kSecond;
  return snapshot.exit_ns != 0 && process.had_memory_ns > snapshot.exit_ns + kLongestHandlersNs;
}

}  // namespace

// Without an exit mark the process was killed or called _exit(). Only the kernel's exit status
// distinguishes the two.
v1::Evidence::Liveness Collector::EndLiveness(const CollectedProcess& process) {
  if (process.exit_marked || process.exit_code.value_or(-1) == 0) return v1::Evidence::EXITED;
  const bool known = process.exit_code.has_value() || process.exit_signal.has_value();
  return known ? v1::Evidence::DIED : v1::Evidence::ENDED;
}

int64_t Collector::WaitFloorNs(const CollectedProcess& process) const {
  return options_.live ? std::max(wait_floor_ns_, process.wait_floor_ns) : 0;
}

bool Collector::CollectProcess(int64_t now_ns, bool whole, CollectedProcess* process,
                               v1::ProcessUpdate* update) {
  update->set_pid(process->id.pid);
  update->set_start_time(process->id.start_time);
  bool changed = false;
  if (process->launch_again_ns != 0 && now_ns >= process->launch_again_ns && !process->ended) {
    ReadLaunch(now_ns, process);
  }
  if (whole || !process->identity_sent) {
    *update->mutable_identity() = process->identity;
    process->identity_sent = true;
    changed = true;
    if (process->visible) {
      const MutexLock lock(served_mutex_);
      served_[process->id] = {process->reader, process->ahead_ns};
    }
  }
  absl::StatusOr<SegmentSnapshot> snapshot = ReadSegment(whole, process);
  if (snapshot.ok()) {
    RemoveCallsOfEndedThreads(now_ns, process, &*snapshot);
    KeepLoopsThatWait(now_ns, process, &*snapshot);
    changed = CollectSites(whole, *snapshot, process, update) || changed;
    const size_t most_records = RecordsOfEach(*snapshot, *process);
    for (const CommSnapshot& comm : snapshot->communicators) {
      if (CollectComm(now_ns, whole, *snapshot, comm, most_records, process,
                      update->add_communicators())) {
        changed = true;
      } else {
        update->mutable_communicators()->RemoveLast();
      }
    }
  }
  v1::Evidence evidence;
  ReadEvidence(now_ns, snapshot.ok() ? &*snapshot : nullptr, process, &evidence);
  std::string sent = evidence.SerializeAsString();
  if (whole || sent != process->evidence_sent) {
    *update->mutable_evidence() = evidence;
    process->evidence_sent = std::move(sent);
    changed = true;
  }
  Redact(*options_.redactor, options_.send_arguments, update);
  return changed;
}

// What holds for every process of this agent, unless the process says otherwise.
void Collector::SetOwnFacts(v1::Identity* identity) const {
  identity->set_tenant(options_.tenant);
  identity->set_stacks_off(options_.stacks_off);
  if (options_.live) identity->set_booted_ns(SteadyNs() - BootNs());
}

void Collector::SetIdentity(const SegmentSnapshot& snapshot, CollectedProcess* process) const {
  process->identity.set_job(snapshot.job);
  process->identity.set_global_rank(snapshot.global_rank);
  process->identity.set_world_size(snapshot.world_size);
  process->identity.set_local_rank(snapshot.local_rank);
#define PROCESS_TEXT(name) process->identity.set_##name(snapshot.name);
#include "proto/facts.def"
  process->identity.set_has_segment(true);
  if (!options_.live) process->identity.set_host(snapshot.host);
}

bool Collector::CollectSites(bool whole, const SegmentSnapshot& snapshot, CollectedProcess* process,
                             v1::ProcessUpdate* update) {
  if (whole) process->sites_sent = 0;
  if (process->sites_sent >= snapshot.sites.size()) return false;
  update->set_first_site(static_cast<uint32_t>(process->sites_sent));
  for (; process->sites_sent < snapshot.sites.size(); ++process->sites_sent) {
    update->add_sites(snapshot.sites[process->sites_sent]);
  }
  return true;
}

absl::StatusOr<SegmentSnapshot> Collector::ReadFile(CollectedProcess* process) {
  const HostClock* clock = clock_.get();
  if (!options_.live || !process->reader->MayBlock()) {
    return process->reader->Read(clock, process->ahead_ns);
  }
  auto snapshot = std::make_shared<absl::StatusOr<SegmentSnapshot>>(absl::UnavailableError(""));
  const auto read = [reader = process->reader, clock = *clock, ahead_ns = process->ahead_ns,
                     snapshot] { *snapshot = reader->Read(&clock, ahead_ns); };
  const std::string key = absl::StrCat("segment ", process->id.pid, " ", process->id.start_time);
  process->stuck = !threads_->Run(key, read, kReadTimeout, PayerOf(*process));
  if (!process->stuck) return std::move(*snapshot);
  const std::string warning = absl::StrCat(
      process->reader->path(), ": the file system does not answer; left out until it does");
  faults_.AddOf(process->id, warning, PayerOf(*process));
  return absl::UnavailableError(warning);
}

absl::StatusOr<SegmentSnapshot> Collector::ReadSegment(bool whole, CollectedProcess* process) {
  if (process->reader == nullptr) return absl::NotFoundError("no segment");
  // The segment of an ended process does not change any more.
  if (process->read_after_end && !whole) return absl::UnavailableError("nothing new");
  if (whole && !process->stuck) process->reader->StartOver();
  absl::StatusOr<SegmentSnapshot> snapshot = ReadFile(process);
  if (!process->stuck) process->read_after_end = process->ended;
  if (!snapshot.ok()) return snapshot;
  process->exit_marked = snapshot->exited && !HasLivedOn(*process, *snapshot);
  process->error = snapshot->error;
  process->error_ns = snapshot->error_ns;
  process->thread_failure = snapshot->thread_failure;
  process->step = snapshot->step;
  process->phase = snapshot->phase;
#define PROCESS_NUMBER(type, name) process->name = snapshot->name;
#define PROCESS_COUNT(name) process->name = snapshot->name;
#include "proto/facts.def"
  for (const std::string& warning : snapshot->warnings) {
    faults_.AddOf(process->id, warning, PayerOf(*process));
  }
  return snapshot;
}

// Each user has the same part of the tick, and in it each process.
void Collector::ShareRecords() {
  records_left_.clear();
  for (const auto& [id, process] : processes_) {
    if (process->reader != nullptr && process->turn != uint64_t{0}) {
      ++records_left_[PayerOf(*process)].processes;
    }
  }
  for (auto& [user, left] : records_left_) {
    left.records = options_.most_records_of_tick / records_left_.size();
  }
}

// How many records of each communicator the tick may have.
size_t Collector::RecordsOfEach(const SegmentSnapshot& snapshot, const CollectedProcess& process) {
  constexpr size_t kLeast = 4;  // a verdict needs the newest ones
  RecordsLeft& left = records_left_[PayerOf(process)];
  const size_t part = left.records / std::max<size_t>(left.processes, 1);
  const size_t each = std::max(part / std::max<size_t>(snapshot.communicators.size(), 1), kLeast);
  size_t used = 0;
  for (const CommSnapshot& comm : snapshot.communicators) {
    used += std::min(comm.records.size(), each);
  }
  left.records -= std::min(left.records, used);
  if (left.processes > 0) --left.processes;
  return each;
}

bool Collector::CollectComm(int64_t now_ns, bool whole, const SegmentSnapshot& snapshot,
                            const CommSnapshot& comm, size_t most_records,
                            CollectedProcess* process, v1::CommUpdate* update) {
  seen_communicators_ = true;
  NoteCallers(comm.records, &process->callers);
  CollectedComm* memory = &process->comms[comm.index];
  if (memory->init_ticks != comm.init_ticks) {
    *memory = CollectedComm();
    memory->init_ticks = comm.init_ticks;
  }
  if (whole) {
    memory->history.checkpoint_sent = 0;
    memory->history.messages_sent.clear();
  }
  // Offline, the time at which a marker changed is unknown.
  FillProgress(comm, FindHostWaits(snapshot, comm), options_.live ? now_ns : 0, &memory->history,
               update);
  rollcall::ApplyWaitFloor(WaitFloorNs(*process), update);
  const bool returned =
      std::any_of(comm.records.begin(), comm.records.end(),
                  [](const RecordSnapshot& record) { return record.returned_ns != 0; });
  const bool was_busy = std::exchange(memory->busy, returned);
  bool changed = true;
  if (returned && was_busy) {
    memory->sent.clear();  // a busy communicator changes in each tick
  } else {
    std::string sent = update->SerializeAsString();
    changed = whole || returned || sent != memory->sent;
    memory->sent = std::move(sent);
  }
  if (whole && whole_records_ != 0) most_records = std::min<size_t>(most_records, whole_records_);
  FillRecords(comm, most_records, update->mutable_records());
  return changed;
}

namespace {

void AddThreadFailure(const ThreadFailureSnapshot& failure, v1::Evidence* evidence) {
  if (failure.error.empty()) return;
  v1::ThreadFailure* added = evidence->mutable_thread_failure();
  added->set_thread(failure.thread);
  added->set_error(failure.error);
  added->set_failed_ns(failure.failed_ns);
}

}  // namespace

void Collector::ReadEvidence(int64_t now_ns, const SegmentSnapshot* snapshot,
                             CollectedProcess* process, v1::Evidence* evidence) {
  ReportCallers(now_ns, process, evidence);
  evidence->set_exit_code(-1);
  evidence->set_error(process->error);
  evidence->set_error_ns(process->error_ns);
  AddThreadFailure(process->thread_failure, evidence);
  if (process->step >= 0) evidence->set_step(process->step);
  evidence->set_phase(process->phase);
#define PROCESS_NUMBER(type, name) evidence->set_##name(process->name);
#define PROCESS_COUNT(name) evidence->set_##name(process->name);
#include "base/mutex.h"
#include "proto/facts.def"
  if (!options_.live) {
    if (process->exit_marked) {
      evidence->set_liveness(v1::Evidence::EXITED);
      if (snapshot != nullptr) evidence->set_ended_ns(snapshot->exit_ns);
    }
  } else if (process->ended) {
    evidence->set_liveness(EndLiveness(*process));
    evidence->set_ended_ns(process->ended_ns);
    evidence->set_ended_after_ns(process->alive_ns);
    evidence->set_exit_code(process->exit_code.value_or(-1));
    evidence->set_exit_signal(process->exit_signal.value_or(0));
    return;
  } else if (process->visible) {
    ReportProcess(now_ns, process, evidence);
  }
  if (snapshot != nullptr) ReportBlocked(now_ns, *snapshot, process, evidence);
}

void Collector::ReadProc(int64_t now_ns, CollectedProcess* process) const {
  const auto reading = threads_->Get<ProcessReading>(
      absl::StrCat("process ", process->id.pid),
      [proc_root = options_.proc_root, pid = process->id.pid] {
        return ReadFromProc(proc_root, pid);
      },
      kReadTimeout, PayerOf(*process));
  if (!reading.has_value()) return;
  process->missing = !reading->stat.has_value();
  if (process->missing) return;
  const ProcStat& stat = *reading->stat;
  process->cpu_moving = process->proc_read_ns != 0 && stat.cpu_ticks > process->cpu_ticks;
  process->cpu_ticks = stat.cpu_ticks;
  process->resident_bytes = stat.resident_bytes;
  if (stat.virtual_bytes > 0) process->had_memory_ns = now_ns;
  process->proc_read_ns = now_ns;
  // A program that takes stacks, like this agent, holds a thread for a moment. A stop says
  // something of the process only if it lasts.
  const bool is_stop = stat.state == kAtStop && !reading->own_stop;
  const bool lasts = std::exchange(process->was_at_stop, is_stop);
  if (stat.state == kAtStop && !(is_stop && lasts)) return;
  process->state = stat.state;
  process->traced = reading->traced;
  process->wait_channel = reading->wait_channel;
}

void Collector::ReportProcess(int64_t now_ns, CollectedProcess* process,
                              v1::Evidence* evidence) const {
  const bool read_lately =
      process->proc_read_ns != 0 && now_ns - process->proc_read_ns < kReadProcEvery;
  if (!read_lately) ReadProc(now_ns, process);
  // A process that is missing in /proc has not ended: its pidfd would have reported the end.
  if (process->missing) return;
  // While its segment cannot be read, a living process is not evidence of its current state.
  if (!process->stuck) evidence->set_liveness(v1::Evidence::ALIVE);
  evidence->set_state(std::string(1, process->state));
  evidence->set_cpu_moving(process->cpu_moving);
  evidence->set_traced(process->traced);
  evidence->set_wait_channel(process->wait_channel);
  const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  evidence->set_memory_bytes(process->resident_bytes);
  evidence->set_cpu_seconds(static_cast<double>(process->cpu_ticks) / ticks_per_second);
}

void Collector::CheckCallers(int64_t now_ns, const SegmentSnapshot& snapshot,
                             CollectedProcess* process) const {
  std::vector<pid_t> callers;
  for (const BlockedSnapshot& blocked : snapshot.blocked) {
    if (now_ns - blocked.since_ns >= kLongCall) callers.push_back(static_cast<pid_t>(blocked.tid));
  }
  const bool checked_lately =
      process->callers_checked_ns != 0 && now_ns - process->callers_checked_ns < kCheckCallersEvery;
  if (callers.empty() || checked_lately) return;
  using Starts = std::optional<std::map<pid_t, uint64_t>>;
  const auto find = [proc_root = options_.proc_root, id = process->id, callers,
                     other_numbers = process->other_numbers] {
    return FindThreads(proc_root, id, callers, other_numbers);
  };
  const Starts starts = threads_
                            ->Get<Starts>(absl::StrCat("process ", process->id.pid), find,
                                          kReadTimeout, PayerOf(*process))
                            .value_or(std::nullopt);
  // Without a result keep the previous one, so that calls of ended threads stay removed.
  if (!starts.has_value()) return;
  process->callers_checked_ns = now_ns;
  process->calls_from_ns.clear();
  const bool clock_known = process->wait_floor_ns == 0;
  for (const pid_t caller : callers) {
    int64_t* from_ns = &process->calls_from_ns[static_cast<uint32_t>(caller)];
    const auto found = starts->find(caller);
    if (found == starts->end()) {
      *from_ns = now_ns;
    } else if (clock_known) {
      *from_ns = BeganAtSteadyNs(found->second) - kClocksDiffer;
    }
  }
}

void Collector::RemoveCallsOfEndedThreads(int64_t now_ns, CollectedProcess* process,
                                          SegmentSnapshot* snapshot) const {
  if (!options_.live || !process->visible) return;
  if (!process->ended) CheckCallers(now_ns, *snapshot, process);
  const auto is_from_ended_thread = [process](const BlockedSnapshot& blocked) {
    const auto from = process->calls_from_ns.find(blocked.tid);
    return from != process->calls_from_ns.end() && blocked.since_ns < from->second;
  };
  std::vector<BlockedSnapshot>* all = &snapshot->blocked;
  all->erase(std::remove_if(all->begin(), all->end(), is_from_ended_thread), all->end());
}

void Collector::KeepLoopsThatWait(int64_t now_ns, CollectedProcess* process,
                                  SegmentSnapshot* snapshot) const {
  if (!options_.live) return RemoveLoops(snapshot);
  const std::vector<uint32_t> due = process->poll_paces.Due(now_ns, *snapshot);
  std::map<uint32_t, CpuUse> uses;
  if (!due.empty()) uses = ReadCpuUses(now_ns, due, process);
  process->poll_paces.KeepWaits(now_ns, uses, snapshot);
}

// By tid in the process's own pid namespace. Of a thread that cannot be read, what is known of its
// process is all.
std::map<uint32_t, CpuUse> Collector::ReadCpuUses(int64_t now_ns, const std::vector<uint32_t>& tids,
                                                  CollectedProcess* process) const {
  const auto ticks_per_second = static_cast<int64_t>(sysconf(_SC_CLK_TCK));
  const auto ticks = static_cast<int64_t>(process->cpu_ticks);
  const CpuUse of_process = {ticks * kSecond / ticks_per_second, process->state};
  std::vector<std::pair<uint32_t, int32_t>> threads;  // own tid, tid
  for (const uint32_t tid : tids) threads.emplace_back(tid, TranslateThread(now_ns, tid, process));
  using Uses = std::map<uint32_t, CpuUse>;
  const auto read = [proc_root = options_.proc_root, pid = process->id.pid, threads, of_process] {
    Uses found;
    for (const auto& [own_tid, tid] : threads) {
      if (tid == 0) continue;
      const auto thread = ReadProcThread(proc_root, pid, tid);
      if (!thread.ok()) continue;
      found[own_tid] = {of_process.used_ns, thread->state, static_cast<int64_t>(thread->cpu_ns),
                        thread->lacked_ns};
    }
    return found;
  };
  Uses uses = threads_
                  ->Get<Uses>(absl::StrCat("process ", process->id.pid), read, kReadTimeout,
                              PayerOf(*process))
                  .value_or(Uses());
  for (const uint32_t tid : tids) uses.emplace(tid, of_process);
  return uses;
}

void Collector::ReportBlocked(int64_t now_ns, const SegmentSnapshot& snapshot,
                              CollectedProcess* process, v1::Evidence* evidence) const {
  for (const BlockedSnapshot& blocked : snapshot.blocked) {
    v1::BlockedCall* call = evidence->add_blocked();
    call->set_thread(TranslateThread(now_ns, blocked.tid, process));
    call->set_op(blocked.op);
    call->set_since_ns(std::max(blocked.since_ns, WaitFloorNs(*process)));
    if (!blocked.key.empty()) {
      call->set_key(blocked.key);
      call->set_keys(blocked.keys);
      call->set_key_timeout_ms(blocked.key_timeout_ms);
    }
    for (const CommSnapshot& comm : snapshot.communicators) {
      if (comm.index != blocked.comm) continue;
      call->set_communicator(comm.id);
      if (comm.rank >= 0) call->set_rank(comm.rank);
    }
  }
}

// Returns the tid in this agent's pid namespace; 0: this agent's /proc does not show the thread.
int32_t Collector::TranslateThread(int64_t now_ns, uint32_t own_tid,
                                   CollectedProcess* process) const {
  const auto tid = static_cast<pid_t>(own_tid);
  if (!options_.live) return tid;
  if (!process->visible) return 0;
  if (!process->other_numbers) return tid;
  const bool read_lately =
      process->threads_read_ns != 0 && now_ns - process->threads_read_ns < kReadProcEvery;
  if (process->threads.count(tid) == 0 && !read_lately) {
    using Threads = std::map<pid_t, pid_t>;
    const auto read = [proc_root = options_.proc_root, pid = process->id.pid] {
      return TranslateThreads(proc_root, pid);
    };
    const std::string key = absl::StrCat("process ", process->id.pid);
    process->threads =
        threads_->Get<Threads>(key, read, kReadTimeout, PayerOf(*process)).value_or(Threads());
    process->threads_read_ns = now_ns;
  }
  const auto known = process->threads.find(tid);
  return known != process->threads.end() ? known->second : 0;
}

}  // namespace rollcall

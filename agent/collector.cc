#include "agent/collector.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/comm_update.h"
#include "agent/proc_evidence.h"
#include "agent/process_discovery.h"

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kDiscoverEvery = 2 * kSecond;
constexpr int64_t kLookCloserEvery = kSecond;  // wait channel, tracer, whether CPU time moves
// A segment that is just being made has no magic yet.
constexpr int64_t kGiveUpAfter = 2 * kSecond;
constexpr size_t kMostNotes = 1000;

std::vector<std::string> ListSegments(const std::string& directory) {
  std::vector<std::string> names;
  DIR* dir = opendir(directory.c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = readdir(dir)) {
    if (IsSegmentName(entry->d_name)) names.emplace_back(entry->d_name);
  }
  closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

struct Collector::CommMemory {
  uint64_t init_ticks = 0;  // another one: the block serves another communicator
  CommHistory history;
  std::string sent;  // the last update, without records
};

struct Collector::ProcessMemory {
  ProcessId id;
  std::string file;  // "" for a process without a segment
  std::unique_ptr<SegmentReader> reader;
  v1::Identity identity;
  bool identity_sent = false;
  size_t sites_sent = 0;
  std::string evidence_sent;
  std::map<uint32_t, CommMemory> comms;

  bool ended = false;
  int64_t ended_ns = 0;
  std::optional<int> exit_code, exit_signal;
  std::string error;  // the exception it dies of
  int64_t error_ns = 0;
  int64_t step = -1;
  std::string phase;
  bool exit_marked = false;
  bool read_after_end = false;

  int64_t looked_ns = 0;  // when the slower evidence was read
  uint64_t cpu_ticks = 0;
  bool cpu_moving = false;
  uint64_t resident_bytes = 0;
  bool traced = false;
  std::string wait_channel;
};

Collector::Collector(CollectorOptions options) : options_(std::move(options)) {
  if (options_.live) watch_ = std::make_unique<ProcessWatch>(options_.proc_root);
}

Collector::~Collector() = default;

std::vector<std::string> Collector::TakeNotes() { return std::exchange(notes_, {}); }

v1::Tick Collector::Collect(int64_t now_ns, bool whole) {
  FindSegments(now_ns);
  if (options_.live) {
    FindProcessesWithoutSegment(now_ns);
    NoteEnded(now_ns);
  }
  v1::Tick tick;
  tick.set_now_ns(now_ns);
  tick.set_whole(whole);
  for (auto& [id, process] : processes_) {
    v1::ProcessUpdate update;
    if (CollectProcess(now_ns, whole, process.get(), &update)) *tick.add_processes() = update;
  }
  if (options_.live && options_.keep_ended_ns > 0) ForgetOldProcesses(now_ns);
  return tick;
}

void Collector::FindSegments(int64_t now_ns) {
  for (const std::string& name : ListSegments(options_.directory)) {
    if (IsNew(name)) OpenSegment(name, now_ns);
  }
}

bool Collector::IsNew(const std::string& name) const {
  const auto known = segments_.find(name);
  if (known == segments_.end()) {
    const auto tried = not_readable_.find(name);
    return tried == not_readable_.end() || tried->second >= 0;
  }
  // A program that a process replaced by exec made a new file under its name.
  const auto process = processes_.find(known->second);
  return process != processes_.end() && process->second->reader != nullptr &&
         process->second->reader->Deleted();
}

void Collector::Note(const std::string& what) {
  if (noted_.size() < kMostNotes && noted_.insert(what).second) notes_.push_back(what);
}

void Collector::OpenSegment(const std::string& name, int64_t now_ns) {
  auto reader = SegmentReader::Open(absl::StrCat(options_.directory, "/", name));
  absl::StatusOr<SegmentSnapshot> snapshot =
      reader.ok() ? (*reader)->Read() : absl::StatusOr<SegmentSnapshot>(reader.status());
  if (!snapshot.ok()) {
    const int64_t first = not_readable_.emplace(name, now_ns).first->second;
    if (!options_.live || now_ns - first >= kGiveUpAfter) {
      not_readable_[name] = -1;
      Note(absl::StrCat("skipped: ", snapshot.status().message()));
    }
    return;
  }
  (*reader)->StartOver();
  const ProcessId id = {snapshot->pid, snapshot->start_time};
  segments_[name] = id;
  std::unique_ptr<ProcessMemory>& process = processes_[id];
  process = std::make_unique<ProcessMemory>();
  process->id = id;
  process->file = name;
  process->reader = *std::move(reader);
  process->identity.set_job(snapshot->job);
  process->identity.set_global_rank(snapshot->global_rank);
  process->identity.set_world_size(snapshot->world_size);
  process->identity.set_local_rank(snapshot->local_rank);
  process->identity.set_command(snapshot->command);
  process->identity.set_gpu_sharing(snapshot->gpu_sharing);
  process->identity.set_has_segment(true);
  if (!options_.live) process->identity.set_host(snapshot->host);
  if (watch_ != nullptr) watch_->Add(id);
}

void Collector::FindProcessesWithoutSegment(int64_t now_ns) {
  if (discovered_at_ns_ != 0 && now_ns - discovered_at_ns_ < kDiscoverEvery) return;
  discovered_at_ns_ = now_ns;
  for (const DiscoveredProcess& found :
       DiscoverProcesses(options_.proc_root, geteuid(), options_.discover_directory)) {
    if (!found.is_main || found.rank.place.rank < 0 || processes_.count(found.process) != 0)
      continue;
    auto process = std::make_unique<ProcessMemory>();
    process->id = found.process;
    process->identity.set_job(found.job);
    process->identity.set_global_rank(found.rank.place.rank);
    process->identity.set_world_size(found.rank.place.world_size);
    process->identity.set_local_rank(found.rank.place.local_rank);
    process->identity.set_command(Printable(found.name.c_str(), found.name.size()));
    watch_->Add(found.process);
    processes_[found.process] = std::move(process);
  }
}

void Collector::NoteEnded(int64_t now_ns) {
  for (const ProcessEnd& end : watch_->Poll()) {
    const auto at = processes_.find(end.process);
    if (at == processes_.end()) continue;
    at->second->ended = true;
    at->second->ended_ns = now_ns;
    at->second->exit_code = end.exit_code;
    at->second->exit_signal = end.signal;
  }
}

bool Collector::CollectProcess(int64_t now_ns, bool whole, ProcessMemory* process,
                               v1::ProcessUpdate* update) {
  update->set_pid(process->id.pid);
  update->set_start_time(process->id.start_ticks);
  bool changed = false;
  if (whole || !process->identity_sent) {
    *update->mutable_identity() = process->identity;
    process->identity_sent = true;
    changed = true;
  }
  const absl::StatusOr<SegmentSnapshot> snapshot = ReadSegment(whole, process);
  if (snapshot.ok()) {
    changed = CollectSites(whole, *snapshot, process, update) || changed;
    for (const CommSnapshot& comm : snapshot->communicators) {
      v1::CommUpdate comm_update;
      if (!CollectComm(now_ns, whole, *snapshot, comm, process, &comm_update)) continue;
      *update->add_communicators() = std::move(comm_update);
      changed = true;
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
  return changed;
}

bool Collector::CollectSites(bool whole, const SegmentSnapshot& snapshot, ProcessMemory* process,
                             v1::ProcessUpdate* update) {
  if (whole) process->sites_sent = 0;
  if (process->sites_sent >= snapshot.sites.size()) return false;
  update->set_first_site(static_cast<uint32_t>(process->sites_sent));
  for (; process->sites_sent < snapshot.sites.size(); ++process->sites_sent) {
    update->add_sites(snapshot.sites[process->sites_sent]);
  }
  return true;
}

absl::StatusOr<SegmentSnapshot> Collector::ReadSegment(bool whole, ProcessMemory* process) {
  if (process->reader == nullptr) return absl::NotFoundError("no segment");
  // Once its process has ended, a segment changes no more.
  if (process->read_after_end && !whole) return absl::UnavailableError("read already");
  if (whole) process->reader->StartOver();
  absl::StatusOr<SegmentSnapshot> snapshot = process->reader->Read();
  process->read_after_end = process->ended;
  if (!snapshot.ok()) return snapshot;
  process->exit_marked = snapshot->exited;
  process->error = snapshot->error;
  process->error_ns = snapshot->error_ns;
  process->step = snapshot->step;
  process->phase = snapshot->phase;
  newest_ns_ = std::max({newest_ns_, snapshot->newest_ns, snapshot->exit_ns});
  for (const std::string& note : snapshot->notes) Note(note);
  return snapshot;
}

bool Collector::CollectComm(int64_t now_ns, bool whole, const SegmentSnapshot& snapshot,
                            const CommSnapshot& comm, ProcessMemory* process,
                            v1::CommUpdate* update) {
  seen_communicators_ = true;
  CommMemory* memory = &process->comms[comm.index];
  if (memory->init_ticks != comm.init_ticks) {
    *memory = CommMemory();
    memory->init_ticks = comm.init_ticks;
  }
  if (whole) memory->history.checkpoint_sent = 0;
  // Offline there is no "now": nobody saw when the markers changed.
  FillProgress(comm, FindHostWaits(snapshot, comm), options_.live ? now_ns : 0, &memory->history,
               update);
  std::string sent = update->SerializeAsString();
  FillRecords(comm, update->mutable_records());
  const bool returned =
      std::any_of(comm.records.begin(), comm.records.end(),
                  [](const RecordSnapshot& record) { return record.returned_ns != 0; });
  if (!whole && !returned && sent == memory->sent) return false;
  memory->sent = std::move(sent);
  return true;
}

void Collector::ReadEvidence(int64_t now_ns, const SegmentSnapshot* snapshot,
                             ProcessMemory* process, v1::Evidence* evidence) {
  evidence->set_exit_code(-1);
  evidence->set_error(process->error);
  evidence->set_error_ns(process->error_ns);
  if (process->step >= 0) evidence->set_step(process->step);
  evidence->set_phase(process->phase);
  if (!options_.live) {
    if (process->exit_marked) {
      evidence->set_liveness(v1::Evidence::EXITED);
      if (snapshot != nullptr) evidence->set_ended_ns(snapshot->exit_ns);
    }
  } else if (process->ended) {
    const bool in_order = process->exit_marked || process->exit_code.value_or(-1) == 0;
    evidence->set_liveness(in_order ? v1::Evidence::EXITED : v1::Evidence::DIED);
    evidence->set_ended_ns(process->ended_ns);
    evidence->set_exit_code(process->exit_code.value_or(-1));
    evidence->set_exit_signal(process->exit_signal.value_or(0));
    return;
  } else if (const auto stat = ReadProcStat(options_.proc_root, process->id.pid); stat.ok()) {
    evidence->set_liveness(v1::Evidence::ALIVE);
    evidence->set_state(std::string(1, stat->state));
    if (now_ns - process->looked_ns >= kLookCloserEvery) {
      process->cpu_moving = process->looked_ns != 0 && stat->cpu_ticks > process->cpu_ticks;
      process->cpu_ticks = stat->cpu_ticks;
      process->resident_bytes = stat->resident_bytes;
      process->looked_ns = now_ns;
      const auto main = ReadThreadEvidence(options_.proc_root, process->id.pid, process->id.pid);
      process->traced = main.ok() && main->tracer != 0;
      process->wait_channel = main.ok() ? Printable(main->wchan.c_str(), 64) : "";
    }
    evidence->set_cpu_moving(process->cpu_moving);
    evidence->set_traced(process->traced);
    evidence->set_wait_channel(process->wait_channel);
    const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
    evidence->set_memory_bytes(process->resident_bytes);
    evidence->set_cpu_seconds(static_cast<double>(process->cpu_ticks) / ticks_per_second);
  }
  if (snapshot == nullptr) return;
  for (const BlockedSnapshot& blocked : snapshot->blocked) {
    v1::BlockedCall* call = evidence->add_blocked();
    call->set_thread(static_cast<int32_t>(blocked.tid));
    call->set_op(blocked.op);
    call->set_since_ns(blocked.since_ns);
    for (const CommSnapshot& comm : snapshot->communicators) {
      if (comm.index == blocked.comm) call->set_communicator(comm.id);
    }
  }
}

void Collector::ForgetOldProcesses(int64_t now_ns) {
  for (auto at = processes_.begin(); at != processes_.end();) {
    const ProcessMemory& process = *at->second;
    if (!process.ended || now_ns - process.ended_ns <= options_.keep_ended_ns) {
      ++at;
      continue;
    }
    if (!process.file.empty()) {
      unlink(absl::StrCat(options_.directory, "/", process.file).c_str());
      segments_.erase(process.file);
    }
    at = processes_.erase(at);
  }
}

}  // namespace rollcall

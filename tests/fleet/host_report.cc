// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/host_report.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "interpose/ops.h"
#include "interpose/segment.h"
#include "tests/fleet/random.h"

namespace rollcall::fleet {
namespace {

constexpr uint32_t kProtocol = 1;
constexpr int kGroup = 8;  // ranks of a communicator besides the one of all ranks
constexpr int32_t kFirstPid = 1000;
constexpr uint64_t kStartTime = 1;
constexpr int64_t kEnqueueNs = 20'000;  // a call returns to the host after that
constexpr const char* kNames[] = {"", "tp", "dp", "pp"};

// Of a rank in one communicator.
struct Place {
  uint64_t id = 0;
  int rank = 0;
  int size = 0;
};

// Communicator `index`, from 1, joins ranks that are 8^(index-1) apart.
Place PlaceOf(uint64_t job, int index, int rank, int ranks) {
  if (index == 0) return {Scramble(job) | 1, rank, ranks};
  int stride = 1;
  for (int i = 1; i < index; ++i) stride *= kGroup;
  const int block = stride * kGroup;
  const int first = rank / block * block + rank % stride;
  const int size = std::min(kGroup, (ranks - first + stride - 1) / stride);
  const uint64_t key = job ^ static_cast<uint64_t>(index) << 48 ^ static_cast<uint64_t>(first) << 1;
  return {Scramble(key) | 1, (rank - first) / stride, size};
}

std::string NameOf(int index) {
  constexpr int kNamed = sizeof(kNames) / sizeof(kNames[0]);
  return index < kNamed ? kNames[index] : absl::StrCat("group-", index);
}

void AddFrame(const char* function, const char* where, int line, v1::ThreadStack* thread) {
  v1::Frame* frame = thread->add_frames();
  frame->set_function(function);
  if (line == 0) {
    frame->set_module(where);
  } else {
    frame->set_file(where);
    frame->set_line(line);
    frame->set_python(true);
  }
}

}  // namespace

HostReport::HostReport(const FleetPlan* plan, int host)
    : plan_(plan),
      host_(host),
      seat_(plan->SeatOf(host)),
      communicators_(1 + plan->options().communicators),
      script_(plan->ScriptOf(seat_.lane, 0)) {
  BeginRun(0);
}

void HostReport::BeginRun(int64_t run) {
  run_ = run;
  end_sent_ = false;
  script_ = plan_->ScriptOf(seat_.lane, run);
  const uint64_t job = segment::HashBytes(script_.plan().name.data(), script_.plan().name.size());
  said_.assign(static_cast<size_t>(seat_.ranks * communicators_), Said());
  for (int local = 0; local < seat_.ranks; ++local) {
    for (int index = 0; index < communicators_; ++index) {
      const Place place = PlaceOf(job, index, seat_.first_rank + local, script_.plan().ranks);
      Said& said = SaidOf(local, index);
      said.id = place.id;
      said.rank = place.rank;
      said.size = place.size;
    }
  }
}

HostReport::Said& HostReport::SaidOf(int local, int index) {
  return said_[static_cast<size_t>(local * communicators_ + index)];
}

int32_t HostReport::PidOf(int64_t run, int local) const {
  return kFirstPid + static_cast<int32_t>(run) * plan_->options().ranks_per_host + local;
}

void HostReport::FillHello(int64_t tick_ns, v1::Hello* hello) const {
  hello->set_protocol(kProtocol);
  hello->set_host(absl::StrCat("node-", host_, plan_->options().host_domain));
  hello->set_agent_id(absl::StrCat("fleet-", getpid(), "-", host_));
  hello->set_rollcall_version(ROLLCALL_VERSION);
  hello->set_tick_ns(tick_ns);
  hello->set_follows_owners(true);
}

void HostReport::FillTick(int64_t now_ns, bool whole, v1::Tick* tick) {
  tick->set_now_ns(now_ns);
  tick->set_whole(whole);
  const int64_t run = plan_->RunAt(seat_.lane, now_ns);
  if (run != run_) {
    AddEndOfRun(tick);
    BeginRun(run);
    whole = true;
  }
  if (end_sent_ && !whole) return;
  for (int local = 0; local < seat_.ranks; ++local) AddProcess(local, now_ns, whole, tick);
  end_sent_ = script_.HasEnded(now_ns);
}

// The end of processes that no tick has shown.
void HostReport::AddEndOfRun(v1::Tick* tick) {
  if (end_sent_) return;
  for (int local = 0; local < seat_.ranks; ++local) {
    AddProcess(local, script_.plan().end_ns, false, tick);
  }
}

void HostReport::AddProcess(int local, int64_t now_ns, bool whole, v1::Tick* tick) {
  v1::ProcessUpdate* process = tick->add_processes();
  process->set_pid(PidOf(run_, local));
  process->set_start_time(kStartTime);
  if (whole) FillIdentity(local, process->mutable_identity());
  FillEvidence(local, now_ns, process->mutable_evidence());
  for (int index = 0; index < communicators_; ++index) {
    AddCommunicator(local, index, now_ns, whole, process);
  }
}

void HostReport::FillIdentity(int local, v1::Identity* identity) const {
  identity->set_job(script_.plan().name);
  identity->set_global_rank(seat_.first_rank + local);
  identity->set_world_size(script_.plan().ranks);
  identity->set_local_rank(local);
  identity->set_command("python train.py");
  identity->set_has_segment(true);
  identity->set_library_version(ROLLCALL_VERSION);
}

// CPU time rises with each tick, so an agent sends this with each one.
void HostReport::FillEvidence(int local, int64_t now_ns, v1::Evidence* evidence) const {
  const JobPlan& plan = script_.plan();
  const bool ended = script_.HasEnded(now_ns);
  const int64_t until_ns = ended ? plan.end_ns : now_ns;
  evidence->set_liveness(ended ? v1::Evidence::EXITED : v1::Evidence::ALIVE);
  evidence->set_ended_ns(ended ? plan.end_ns : 0);
  evidence->set_exit_code(ended ? 0 : -1);
  evidence->set_state(ended ? "" : "S");
  evidence->set_cpu_moving(!ended);
  evidence->set_cpu_seconds(static_cast<double>(until_ns - plan.begin_ns) / 1e9 + local);
  evidence->set_memory_bytes(uint64_t{40} << 30);
}

uint64_t HostReport::SignatureOf(int rank, bool world, uint64_t entered) const {
  const bool other = entered > 0 && script_.IsOtherCall(rank, world, entered - 1);
  return other ? plan_->history().OtherSignatureOf(entered) : plan_->history().SignatureOf(entered);
}

void HostReport::AddCommunicator(int local, int index, int64_t now_ns, bool whole,
                                 v1::ProcessUpdate* process) {
  const int rank = seat_.first_rank + local;
  const bool world = index == 0;
  const Standing standing = script_.At(rank, world, now_ns);
  const bool destroyed = script_.HasEnded(now_ns);
  Said& said = SaidOf(local, index);
  if (!whole && standing == said.standing && destroyed == said.destroyed) return;
  const int64_t began_ns = script_.plan().begin_ns;
  v1::CommUpdate* comm = process->add_communicators();
  comm->set_index(static_cast<uint32_t>(index));
  comm->set_id(said.id);
  comm->set_name(NameOf(index));
  comm->set_rank(said.rank);
  comm->set_size(said.size);
  comm->set_device(local);
  comm->set_state(static_cast<uint32_t>(destroyed ? segment::CommState::kDestroyed
                                                  : segment::CommState::kReady));
  comm->set_init_entered_ns(began_ns - kSecond);
  comm->set_state_since_ns(destroyed ? script_.plan().end_ns : began_ns);
  comm->set_has_markers(true);
  comm->set_entered(standing.entered);
  comm->set_returned(standing.entered);
  comm->set_started(standing.entered);
  comm->set_finished(standing.finished);
  comm->set_waiting_since_ns(standing.waiting_since_ns);
  comm->set_signature(SignatureOf(rank, world, standing.entered));
  auto most = static_cast<uint64_t>(plan_->options().whole_records);
  if (whole && whole_records_ != 0) most = std::min(most, whole_records_);
  const uint64_t unsent = whole ? 0 : said.records;
  const uint64_t first = std::max(unsent, standing.entered - std::min(standing.entered, most));
  AddRecords(rank, world, first, standing.entered, comm->mutable_records());
  said.standing = standing;
  said.records = standing.entered;
  said.destroyed = destroyed;
}

void HostReport::AddRecords(int rank, bool world, uint64_t first, uint64_t end,
                            v1::RecordBatch* batch) const {
  batch->set_first_index(first);
  int64_t before_ns = 0;
  for (uint64_t position = first; position < end; ++position) {
    const CallArgs args = script_.IsOtherCall(rank, world, position)
                              ? CallHistory::OtherArgs()
                              : CallHistory::ArgsAt(position);
    const int64_t entered_ns = script_.EnteredNs(rank, position);
    batch->add_position(position);
    batch->add_op(args.op);
    batch->add_dtype(args.dtype);
    batch->add_reduction(args.reduction);
    batch->add_peer(kNoPeer);
    batch->add_count(args.count);
    batch->add_entered_delta_ns(entered_ns - before_ns);
    batch->add_duration_ns(kEnqueueNs);
    batch->add_stream(1);
    batch->add_caller(0x1000);
    batch->add_thread(0);
    batch->add_group(0);
    batch->add_result(0);
    batch->add_flags(0);
    before_ns = entered_ns;
  }
}

void HostReport::FillStack(uint64_t request, const v1::ProcessRef& process,
                           v1::StackReply* reply) const {
  reply->set_request(request);
  reply->set_start_time(process.start_time());
  v1::ProcessStack* stack = reply->mutable_stack();
  stack->set_pid(process.pid());
  const int local = process.pid() - PidOf(run_, 0);
  if (local < 0 || local >= seat_.ranks || end_sent_) {
    stack->set_error("the process has ended");
    return;
  }
  const JobPlan& plan = script_.plan();
  const bool absent = plan.fault == Fault::kAbsent && seat_.first_rank + local == plan.culprit;
  stack->set_method("ptrace");
  v1::ThreadStack* thread = stack->add_threads();
  thread->set_tid(process.pid());
  thread->set_name("python");
  thread->set_state("S");
  AddFrame(absent ? "read" : "ncclAllReduce", absent ? "libc.so.6" : "libnccl.so.2", 0, thread);
  AddFrame(absent ? "validate" : "train_step", "train.py", absent ? 212 : 57, thread);
}

}  // namespace rollcall::fleet

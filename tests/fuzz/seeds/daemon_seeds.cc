// SPDX-License-Identifier: Apache-2.0
#include "interpose/network_wait.h"
#include "interpose/ops.h"
#include "interpose/segment.h"
#include "rollcall/v1/agent.pb.h"
#include "rollcall/v1/incident.pb.h"
#include "rollcall/v1/look.pb.h"
#include "seeds.h"
#include "story.pb.h"

namespace rollcall {
namespace fuzz {
namespace {

constexpr int64_t kAgentNs = 1'800'000'000'000'000'000;
constexpr uint64_t kCalls = 6;
constexpr uint32_t kWaitsMs = 40'000;

void AddRecords(uint64_t count, v1::RecordBatch* batch) {
  for (uint64_t i = 0; i < count; ++i) {
    batch->add_position(i);
    batch->add_entered_delta_ns(i == 0 ? kAgentNs : 1'000'000);
    batch->add_duration_ns(500);
    batch->add_site(1);
  }
  batch->add_op(static_cast<uint32_t>(Op::kAllReduce));
  batch->add_dtype(7);
  batch->add_reduction(0);
  batch->add_peer(-1);
  batch->add_count(1024);
  batch->add_stream(1);
  batch->add_caller(2);
  batch->add_thread(4121);
  batch->add_group(0);
  batch->add_result(0);
  batch->add_flags(0);
}

// Rank `rank` of two, which has entered `entered` all-reduces and finished `finished`.
void AddComm(int rank, uint64_t entered, uint64_t finished, v1::ProcessUpdate* process) {
  v1::CommUpdate* comm = process->add_communicators();
  comm->set_id(0xa91f);
  comm->set_name("dp");
  comm->set_rank(rank);
  comm->set_size(2);
  comm->set_state(static_cast<uint32_t>(segment::CommState::kReady));
  comm->set_has_markers(true);
  comm->set_entered(entered);
  comm->set_returned(entered);
  comm->set_started(entered);
  comm->set_finished(finished);
  comm->set_signature(entered == finished ? 5 : 6);
  if (entered > finished) comm->set_waiting_since_ns(kAgentNs + 20'000'000);
  AddRecords(entered, comm->mutable_records());
}

void AddProcess(int rank, v1::Tick* tick) {
  v1::ProcessUpdate* process = tick->add_processes();
  process->set_pid(4121 + rank);
  process->set_start_time(88);
  v1::Identity* identity = process->mutable_identity();
  identity->set_job("train");
  identity->set_global_rank(rank);
  identity->set_world_size(2);
  identity->set_has_segment(true);
  identity->set_command("python train.py");
  process->mutable_evidence()->set_liveness(v1::Evidence::ALIVE);
  process->mutable_evidence()->set_state("S");
  process->add_sites("/x/train.py:57 in train_epoch");
  AddComm(rank, rank == 0 ? kCalls : kCalls - 1, kCalls - 1, process);
}

Step* AddStep(uint32_t agent, uint32_t later_ms, Story* story) {
  Step* step = story->add_steps();
  step->set_agent(agent);
  step->set_later_ms(later_ms);
  return step;
}

// Rank 1 does not enter the call in which rank 0 waits.
Story MissingRank() {
  Story story;
  for (uint32_t agent = 0; agent < 2; ++agent) {
    v1::Hello* hello = AddStep(agent, 0, &story)->mutable_message()->mutable_hello();
    hello->set_protocol(1);
    hello->set_host("node");
    v1::Tick* tick = AddStep(agent, 100, &story)->mutable_message()->mutable_tick();
    tick->set_now_ns(kAgentNs);
    tick->set_whole(true);
    AddProcess(static_cast<int>(agent), tick);
  }
  for (const uint32_t ms : {100u, kWaitsMs, kWaitsMs}) {
    for (uint32_t agent = 0; agent < 2; ++agent) {
      AddStep(agent, ms, &story)->mutable_message()->mutable_tick()->set_now_ns(kAgentNs + ms);
    }
  }
  return story;
}

// As before. Then the host of rank 1 shows a broken link, and rank 1 dies.
Story DeadRank() {
  Story story = MissingRank();
  v1::HostFacts* facts =
      AddStep(1, 10, &story)->mutable_message()->mutable_host_facts()->mutable_facts();
  v1::HostFact* fact = facts->add_facts();
  fact->set_kind("link_down");
  fact->set_subject("mlx5_2 port 1");
  fact->set_age_seconds(21);
  facts->add_probes()->set_outcome("late");
  v1::Tick* tick = AddStep(1, 100, &story)->mutable_message()->mutable_tick();
  tick->set_now_ns(kAgentNs + 1'000'000);
  v1::ProcessUpdate* process = tick->add_processes();
  process->set_pid(4122);
  process->set_start_time(88);
  process->mutable_evidence()->set_liveness(v1::Evidence::DIED);
  process->mutable_evidence()->set_exit_signal(9);
  process->mutable_evidence()->set_error("ValueError: x at train.py:57");
  AddStep(0, kWaitsMs, &story)->set_disconnects(true);
  return story;
}

// Both ranks are in the same call, one of them in a Broadcast.
Story Mismatch() {
  Story story = MissingRank();
  v1::Tick* tick = story.mutable_steps(3)->mutable_message()->mutable_tick();
  v1::CommUpdate* comm = tick->mutable_processes(0)->mutable_communicators(0);
  comm->set_entered(kCalls);
  comm->set_waiting_since_ns(kAgentNs + 1);
  v1::RecordBatch* records = comm->mutable_records();
  records->Clear();
  AddRecords(kCalls, records);
  records->clear_op();
  for (uint64_t i = 0; i < kCalls; ++i) {
    records->add_op(static_cast<uint32_t>(i + 1 == kCalls ? Op::kBroadcast : Op::kAllReduce));
  }
  return story;
}

v1::ProcessStack Stack(int rank, const std::string& function) {
  v1::ProcessStack stack;
  stack.set_rank(rank);
  stack.set_host("node-17");
  stack.set_pid(4121 + rank);
  stack.set_method("ptrace");
  stack.mutable_taken_at()->set_seconds(1'800'000'000);
  v1::ThreadStack* thread = stack.add_threads();
  thread->set_tid(4121 + rank);
  thread->set_name("python");
  thread->set_state("S");
  for (const std::string& name : {function, std::string("train_epoch"), std::string("main")}) {
    v1::Frame* frame = thread->add_frames();
    frame->set_function(name);
    frame->set_file("/x/train.py");
    frame->set_line(57);
    frame->set_python(true);
  }
  return stack;
}

void AddVerdict(v1::Incident* incident) {
  v1::Verdict* verdict = incident->add_verdicts();
  verdict->set_cause("missing_rank");
  verdict->set_certainty("certain");
  v1::Culprit* culprit = verdict->add_culprits();
  culprit->set_rank(1);
  culprit->set_host("node-17");
  culprit->set_pid(4122);
  culprit->set_at("/x/train.py:57 in validate");
  verdict->add_waiting_ranks(0);
  verdict->mutable_communicator()->set_id("000000000000a91f");
  verdict->mutable_communicator()->set_name("dp");
  verdict->mutable_communicator()->set_size(2);
  verdict->mutable_call()->set_position(5);
  verdict->mutable_call()->set_operation("AllReduce");
  verdict->set_waited_seconds(48.2);
  verdict->set_summary("rank 1 (node-17, pid 4122) has not entered AllReduce #5 on \"dp\"");
  verdict->add_evidence("rank 0 waits");
  verdict->set_culprit_ranks("1");
  verdict->set_waiting_rank_ranges("0");
  verdict->add_advice()->set_id("uneven-inputs");
  verdict->add_chain()->add_from(0);
  verdict->add_histories()->set_differs(true);
}

v1::Incident HangIncident() {
  v1::Incident incident;
  incident.set_id("train-1");
  incident.set_job("train");
  incident.set_tenant("default");
  incident.set_state("confirmed");
  incident.mutable_opened_at()->set_seconds(1'800'000'000);
  incident.mutable_confirmed_at()->set_seconds(1'800'000'060);
  AddVerdict(&incident);
  v1::StackTree* tree = incident.mutable_stack_tree();
  tree->add_nodes();
  v1::StackTree::Node* node = tree->add_nodes();
  node->set_frame("main");
  node->set_ranks("0-1");
  node->set_threads(2);
  *incident.add_stacks() = Stack(0, "ncclAllReduce");
  *incident.add_stacks() = Stack(1, "validate");
  *incident.add_stacks() = Stack(1, "validate");
  v1::HostFacts* host = incident.add_host_facts();
  host->set_host("node-17");
  host->add_facts()->set_kind("link_down");
  return incident;
}

// A state of a transfer in which three of four steps have ended, of a wait of 30 s.
void AddState(int peer, bool sends, NetworkWait wait, v1::NetworkSample* sample) {
  v1::NetworkSample::State* state = sample->add_states();
  state->set_peer(peer);
  state->set_sends(sends);
  state->set_begun(4);
  state->set_ended(3);
  state->set_wait(static_cast<uint32_t>(wait));
  state->set_waited_seconds(30);
}

// A ring in which all wait for data, but rank 2: there `sends` and `receives`. NCCL has reported an
// error on it.
v1::Incident StalledRing(NetworkWait sends, NetworkWait receives, const std::string& last_host) {
  constexpr int kRanks = 4;
  v1::Incident incident;
  incident.add_verdicts()->mutable_communicator()->set_size(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    v1::ProcessStack* stack = incident.add_stacks();
    stack->set_host(rank == kRanks - 1 ? last_host : "node-" + std::to_string(rank));
    stack->set_culprit(rank == 2);
    v1::NetworkSample* sample = stack->add_network();
    sample->set_communicator(0xa91f);
    sample->set_rank(rank);
    AddState((rank + 1) % kRanks, true, rank == 2 ? sends : NetworkWait::kSendGpu, sample);
    AddState((rank + kRanks - 1) % kRanks, false, rank == 2 ? receives : NetworkWait::kReceive,
             sample);
  }
  return incident;
}

// Two ranks on one host, of which one is elsewhere.
v1::HostLook Look() {
  v1::HostLook look;
  look.set_host("node-17");
  look.set_begun_ns(1'000'000'000);
  look.set_ended_ns(8'000'000'000);
  for (int rank = 0; rank < 2; ++rank) {
    v1::ProcessLook* process = look.add_processes();
    process->mutable_process()->set_pid(4121 + rank);
    process->mutable_process()->mutable_identity()->set_global_rank(rank);
    process->mutable_process()->mutable_identity()->set_world_size(2);
    process->set_found_by("RANK");
    process->add_libraries("nccl");
    v1::JobMark* mark = process->add_marks();
    mark->set_kind("rendezvous");
    mark->set_value("node-17:29500");
    for (int i = 0; i < 2; ++i) {
      v1::StackSample* sample = process->add_samples();
      sample->set_taken_ns(2'000'000'000 + i * int64_t{5'000'000'000});
      *sample->mutable_stack() = Stack(rank, rank == 0 ? "ncclAllReduce" : "validate");
    }
  }
  return look;
}

}  // namespace

void AddDaemonSeeds(Seeds* seeds) {
  for (const Story& story : {MissingRank(), DeadRank(), Mismatch()}) {
    (*seeds)["tick"].push_back(story.SerializeAsString());
  }
  const Story story = MissingRank();
  for (const Step& step : story.steps()) {
    (*seeds)["parsed_size"].push_back(step.message().SerializeAsString());
  }
  using W = NetworkWait;
  (*seeds)["network"] = {StalledRing(W::kSendGpu, W::kReceiveGpu, "node-3").SerializeAsString(),
                         StalledRing(W::kSend, W::kReceive, "node-3").SerializeAsString(),
                         StalledRing(W::kNone, W::kReceive, "node-3").SerializeAsString(),
                         StalledRing(W::kSendGpu, W::kReceiveGpu, "node-2").SerializeAsString()};
  (*seeds)["look"] = {Look().SerializeAsString()};
  (*seeds)["incident"] = {HangIncident().SerializeAsString()};
  (*seeds)["stacks"] = {HangIncident().SerializeAsString()};
}

}  // namespace fuzz
}  // namespace rollcall

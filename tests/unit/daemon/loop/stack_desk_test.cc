// SPDX-License-Identifier: Apache-2.0
// Stack requests of incidents and of people, and the delivery of their results.
#include "daemon/loop/stack_desk.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <set>
#include <thread>

#include "base/steady_clock.h"
#include "daemon/incidents/incident_stacks.h"
#include "daemon/loop/job_runner.h"
#include "eventually.h"
#include "interpose/segment.h"
#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

constexpr char kNotConnected[] = "the agent of its host is not connected";

void AddOpenCall(int64_t entered_ns, v1::CommUpdate* comm) {
  comm->set_has_markers(true);
  comm->set_started(1);
  comm->set_waiting_since_ns(entered_ns);
  v1::RecordBatch* batch = comm->mutable_records();
  batch->add_position(0);
  batch->add_op(1);
  batch->add_dtype(7);
  batch->add_reduction(0);
  batch->add_peer(-1);
  batch->add_count(8);
  batch->add_entered_delta_ns(entered_ns);
  batch->add_duration_ns(5);
  batch->add_stream(0);
  batch->add_caller(0);
  batch->add_thread(1);
  batch->add_group(0);
  batch->add_result(0);
  batch->add_flags(0);
}

// Two ranks of one communicator. The second one has failed in Python.
v1::Tick MakeFailureTick() {
  v1::Tick tick;
  tick.set_now_ns(SteadyNs());
  for (int rank : {0, 1}) {
    v1::ProcessUpdate* process = tick.add_processes();
    process->set_pid(4000 + rank);
    process->set_start_time(1);
    process->mutable_identity()->set_job("job");
    process->mutable_identity()->set_global_rank(rank);
    process->mutable_identity()->set_has_segment(true);
    process->mutable_evidence()->set_liveness(v1::Evidence::ALIVE);
    v1::CommUpdate* comm = process->add_communicators();
    comm->set_id(5);
    comm->set_rank(rank);
    comm->set_size(2);
    comm->set_state(static_cast<uint32_t>(segment::CommState::kReady));
    comm->set_entered(rank == 0 ? 1 : 0);
    comm->set_signature(segment::kSignatureSeed);
    if (rank == 0) AddOpenCall(tick.now_ns(), comm);
  }
  v1::Evidence* failed = tick.mutable_processes(1)->mutable_evidence();
  failed->set_error("ValueError: no at train.py:5");
  failed->set_error_ns(tick.now_ns());
  return tick;
}

const JobKey kJob("job");

AgentName TheAgent() { return {"node", "node/1", 100'000'000, true}; }

// The parts of a daemon that make stack requests. The test is the agent.
class StackDeskTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/rollcall-desk-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    scratch_ = path;
    IncidentBookOptions options;
    options.limits = limits_;
    options.report_dir = scratch_;
    options.log_incidents = false;
    incidents_ = std::make_unique<IncidentBook>(options, &timeline_);
    ASSERT_TRUE(incidents_->Start().ok());
    desk_ = std::make_unique<StackDesk>(
        [this](const std::string& agent, const v1::DaemonMessage& message) {
          EXPECT_EQ(agent, TheAgent().id);
          return send_(message.take_stacks());
        },
        &store_, incidents_.get(), &timeline_, &counters_);
    runner_ = std::make_unique<JobRunner>(
        kJob,
        JobRunner::Parts{&store_, incidents_.get(), desk_.get(), &rates_, &counters_, &timeline_},
        JobRunner::Options{limits_, 0, 3600'000'000'000});
    store_.agents()->Connected(TheAgent());
    store_.Apply(TheAgent(), MakeFailureTick(), timeline_.Now());
  }
  void TearDown() override {
    runner_.reset();
    desk_.reset();
    incidents_.reset();
    EXPECT_TRUE(Eventually([] { return live_loose_threads.load() == 0; }));
    fs::remove_all(scratch_);
  }

  void Look() {
    v1::Tick heard;
    heard.set_now_ns(SteadyNs());
    store_.Apply(TheAgent(), heard, timeline_.Now());
    runner_->DiagnoseNext();
    runner_->Run();
  }

  void LookUntilConfirmed() {
    ASSERT_TRUE(Eventually([this] {
      Look();
      const auto all = incidents_->reader().All("");
      return !all.empty() && all[0].has_confirmed_at();
    }));
  }

  uint64_t ReportsBegun() const {
    const ReportQueue::Counts counts = incidents_->reader().CountDeliveries().reports;
    return counts.written + counts.waiting;
  }

  static v1::StackReply Reply(uint64_t request, int32_t pid, const std::string& function) {
    v1::StackReply reply;
    reply.set_request(request);
    reply.mutable_stack()->set_pid(pid);
    v1::ThreadStack* thread = reply.mutable_stack()->add_threads();
    thread->set_tid(pid);
    thread->add_frames()->set_function(function);
    return reply;
  }

  const Limits limits_;
  fs::path scratch_;
  Timeline timeline_;
  JobStore store_{"default"};
  CallRates rates_;
  std::unique_ptr<IncidentBook> incidents_;
  std::unique_ptr<StackDesk> desk_;
  DaemonCounters counters_;
  std::unique_ptr<JobRunner> runner_;
  std::function<bool(const v1::TakeStacks&)> send_ = [](const v1::TakeStacks&) { return true; };
};

TEST_F(StackDeskTest, AReportWaitsForTheRepliesOfAgents) {
  LookUntilConfirmed();
  incidents_->Publish();
  EXPECT_EQ(ReportsBegun(), 0u);
}

TEST_F(StackDeskTest, AReportDoesNotWaitForAnAgentThatIsNotConnected) {
  send_ = [](const v1::TakeStacks&) { return false; };
  LookUntilConfirmed();
  incidents_->Publish();
  EXPECT_EQ(ReportsBegun(), 1u);
}

TEST_F(StackDeskTest, CountsTheRequestsThatItForgets) {
  StackRequest request;
  request.job = kJob;
  RequestedProcess process;
  process.agent = TheAgent().id;
  process.host = TheAgent().host;
  request.processes = {process};
  const auto forgotten = [this] {
    return counters_.Get().dropped[static_cast<size_t>(Dropped::kStacks)];
  };
  for (size_t i = 0; i < StackRequests::kKept; ++i) desk_->Request(request);
  EXPECT_EQ(forgotten(), 0u);
  for (int i = 0; i < 3; ++i) desk_->Request(request);
  EXPECT_EQ(forgotten(), 3u);
}

TEST_F(StackDeskTest, AsksForTheStacksOfChildrenOnlyIfTheRequestDoes) {
  StackRequest request;
  request.job = kJob;
  RequestedProcess process;
  process.agent = TheAgent().id;
  process.host = TheAgent().host;
  request.processes = {process};
  std::vector<bool> asked;
  send_ = [&asked](const v1::TakeStacks& take) {
    asked.push_back(take.children());
    return true;
  };
  desk_->Request(request);
  request.children = true;
  desk_->Request(request);
  EXPECT_EQ(asked, (std::vector<bool>{false, true}));
}

// A busy host answers late. What its ranks have begun meanwhile, the sample does not show.
TEST_F(StackDeskTest, ASampleIsAsOldAsItsRequest) {
  StackRequest request;
  request.job = kJob;
  RequestedProcess process;
  process.agent = TheAgent().id;
  process.host = TheAgent().host;
  process.pid = 4000;
  process.index = 0;
  request.processes = {process};
  uint64_t number = 0;
  send_ = [&number](const v1::TakeStacks& take) {
    number = take.request();
    return true;
  };
  desk_->Request(request);
  const int64_t begun_ns = timeline_.Now();
  desk_->OnStackReply(TheAgent(), Reply(number, 4000, "main"));
  store_.Read(kJob, [&](const JobState& state) {
    ASSERT_NE(state.processes[0].stacks_ns, 0);
    EXPECT_LE(state.processes[0].stacks_ns, begun_ns);
  });
}

// The job is ended because of the verdict, and the next sample meets a process that ends.
TEST_F(StackDeskTest, ASampleOfAProcessThatEndsChangesNothing) {
  StackRequest request;
  request.job = kJob;
  RequestedProcess process;
  process.agent = TheAgent().id;
  process.host = TheAgent().host;
  process.pid = 4000;
  process.index = 0;
  request.processes = {process};
  uint64_t number = 0;
  send_ = [&number](const v1::TakeStacks& take) {
    number = take.request();
    return true;
  };
  const auto words = [this] {
    std::string text;
    store_.Read(kJob, [&](const JobState& state) { text = state.processes[0].stack_words; });
    return text;
  };
  desk_->Request(request);
  desk_->OnStackReply(TheAgent(), Reply(number, 4000, "train"));
  ASSERT_EQ(words(), "train");
  v1::StackReply over;
  over.mutable_stack()->set_pid(4000);
  for (const char* const state : {"Z", "R"}) over.mutable_stack()->add_threads()->set_state(state);
  desk_->Request(request);
  over.set_request(number);
  desk_->OnStackReply(TheAgent(), over);
  EXPECT_EQ(words(), "train");
}

v1::NetworkSample TransfersOn(uint64_t communicator) {
  v1::NetworkSample sample;
  sample.set_communicator(communicator);
  v1::NetworkSample::State* state = sample.add_states();
  state->set_peer(1);
  state->set_wait(4);
  state->set_waited_seconds(3);
  return sample;
}

// The incident does not list all members of a call, but the way over their transfers needs them.
TEST_F(StackDeskTest, TheTransfersOfEveryAskedProcessAreKept) {
  LookUntilConfirmed();
  int64_t answered_ns = 0;
  send_ = [this, &answered_ns](const v1::TakeStacks& take) {
    EXPECT_EQ(take.network_of_size(), 1);
    EXPECT_EQ(take.network_of(0), 5U);
    answered_ns = timeline_.Now();
    for (const v1::ProcessRef& process : take.processes()) {
      v1::StackReply reply = Reply(take.request(), process.pid(), "train");
      *reply.mutable_stack()->add_network() = TransfersOn(5);
      *reply.mutable_stack()->add_network() = TransfersOn(6);  // no caller has asked for it
      desk_->OnStackReply(TheAgent(), reply);
    }
    return true;
  };
  for (const bool is_rest : {true, false}) {
    StackRequest request;
    store_.Read(kJob, [&](const JobState& state) {
      request = MakeStackRequest(state, std::vector<int32_t>{is_rest ? 0 : 1});
    });
    request.incident = incidents_->reader().All("")[0].id();
    request.is_rest = is_rest;
    request.network_of = {5};
    desk_->Request(request);
    const Process process = store_.Get(kJob).processes.at(is_rest ? 0 : 1);
    ASSERT_NE(process.network, nullptr);
    ASSERT_EQ(process.network->size(), 1U);
    EXPECT_EQ(process.network->at(0).communicator, 5U);
    EXPECT_EQ(process.network->at(0).process, is_rest ? 0 : 1);
    EXPECT_EQ(process.network->at(0).states.at(0).wait, NetworkWait::kReceive);
    EXPECT_NE(process.network_ns, 0);
    EXPECT_LE(process.network_ns, answered_ns) << "they are as old as the request, as stacks are";
    EXPECT_EQ(process.network->at(0).states.at(0).since_ns, process.network_ns - 3'000'000'000);
  }
}

TEST_F(StackDeskTest, AReplyWithTransfersAloneIsNoPictureOfAStack) {
  LookUntilConfirmed();
  send_ = [this](const v1::TakeStacks& take) {
    EXPECT_TRUE(take.only_network());
    for (const v1::ProcessRef& process : take.processes()) {
      v1::StackReply reply = Reply(take.request(), process.pid(), "of an older agent");
      *reply.mutable_stack()->add_network() = TransfersOn(5);
      desk_->OnStackReply(TheAgent(), reply);
    }
    return true;
  };
  const std::string before = incidents_->reader().All("")[0].SerializeAsString();
  StackRequest request;
  store_.Read(kJob, [&](const JobState& state) {
    request = MakeStackRequest(state, std::vector<int32_t>{0});
  });
  request.incident = incidents_->reader().All("")[0].id();
  request.network_of = {5};
  request.only_network = true;
  desk_->Request(request);
  EXPECT_NE(store_.Get(kJob).processes.at(0).network, nullptr);
  EXPECT_EQ(incidents_->reader().All("")[0].SerializeAsString(), before);
}

TEST_F(StackDeskTest, AReplyOfAnOldAgentHasNoTransfers) {
  send_ = [this](const v1::TakeStacks& take) {
    for (const v1::ProcessRef& process : take.processes()) {
      desk_->OnStackReply(TheAgent(), Reply(take.request(), process.pid(), "train"));
    }
    return true;
  };
  LookUntilConfirmed();
  for (const Process& process : store_.Get(kJob).processes) {
    EXPECT_NE(process.stacks_ns, 0);
    EXPECT_EQ(process.network, nullptr);
  }
}

TEST_F(StackDeskTest, AnIncidentShowsThatAnAgentIsNotConnected) {
  send_ = [](const v1::TakeStacks&) { return false; };
  LookUntilConfirmed();
  const v1::Incident incident = incidents_->reader().All("")[0];
  ASSERT_EQ(incident.stacks_size(), 2);
  for (const v1::ProcessStack& stack : incident.stacks()) {
    EXPECT_EQ(stack.error(), kNotConnected);
    EXPECT_EQ(stack.host(), "node");
  }
  EXPECT_EQ(incident.stacks(0).rank(), 1);
  EXPECT_TRUE(incident.stacks(0).culprit());
}

// A reply may arrive inside the call that sends the request: the desk holds no mutex then, nor a
// job's.
TEST_F(StackDeskTest, AnAgentMayReplyDuringTheRequest) {
  send_ = [this](const v1::TakeStacks& take) {
    store_.Read(kJob, [](const JobState&) {});
    for (const v1::ProcessRef& process : take.processes()) {
      desk_->OnStackReply(TheAgent(), Reply(take.request(), process.pid(), "train"));
    }
    return true;
  };
  LookUntilConfirmed();
  const v1::Incident incident = incidents_->reader().All("")[0];
  ASSERT_EQ(incident.stacks_size(), 2);
  EXPECT_EQ(incident.stacks(0).threads(0).frames(0).function(), "train");
  EXPECT_TRUE(incident.stacks(0).culprit());
  incidents_->Publish();
  EXPECT_EQ(ReportsBegun(), 0u) << "no verdict rests on the stacks yet";
  Look();
  incidents_->Publish();
  EXPECT_EQ(ReportsBegun(), 1u);
}

// The incident does not list them, but the wait graph follows those that wait outside NCCL.
TEST_F(StackDeskTest, TheRestOfTheProcessesCountsIfItWaitsForOthers) {
  LookUntilConfirmed();
  for (const char* function : {"train", "c10d::TCPStore::doWait(...)"}) {
    send_ = [&](const v1::TakeStacks& take) {
      for (const v1::ProcessRef& process : take.processes()) {
        desk_->OnStackReply(TheAgent(), Reply(take.request(), process.pid(), function));
      }
      return true;
    };
    StackRequest rest;
    store_.Read(kJob, [&rest](const JobState& state) {
      rest = MakeStackRequest(state, std::vector<int32_t>{0});
    });
    rest.incident = incidents_->reader().All("")[0].id();
    rest.is_rest = true;
    desk_->Request(rest);
    const Process process = store_.Get(kJob).processes.at(0);
    EXPECT_EQ(process.stacks_ns != 0, function != std::string("train"));
    EXPECT_EQ(process.waits_outside_since_ns != 0, process.stacks_ns != 0);
  }
}

TEST_F(StackDeskTest, PeopleGetRepliesOnlyFromTheRequestedAgent) {
  AgentName stranger = TheAgent();
  stranger.id = "from elsewhere";
  send_ = [&](const v1::TakeStacks& take) {
    for (const v1::ProcessRef& process : take.processes()) {
      desk_->OnStackReply(stranger, Reply(take.request(), process.pid(), "forged"));
      desk_->OnStackReply(TheAgent(), Reply(take.request(), process.pid(), "train"));
      desk_->OnStackReply(TheAgent(), Reply(take.request(), process.pid(), "once more"));
    }
    return true;
  };
  v1::TakeStacksRequest request;
  request.set_job("job");
  std::vector<v1::ProcessStack> stacks;
  const absl::Status status = desk_->Stream(kJob, request, [&](const v1::ProcessStack& stack) {
    stacks.push_back(stack);
    return true;
  });
  ASSERT_TRUE(status.ok());
  ASSERT_EQ(stacks.size(), 2u);
  for (const v1::ProcessStack& stack : stacks) {
    EXPECT_EQ(stack.threads(0).frames(0).function(), "train");
    EXPECT_EQ(stack.rank(), stack.pid() - 4000);
  }
}

TEST_F(StackDeskTest, PeopleGetAnErrorForAnAgentThatIsNotConnected) {
  send_ = [](const v1::TakeStacks&) { return false; };
  v1::TakeStacksRequest request;
  request.set_job("job");
  std::vector<v1::ProcessStack> stacks;
  ASSERT_TRUE(desk_
                  ->Stream(kJob, request,
                           [&](const v1::ProcessStack& stack) {
                             stacks.push_back(stack);
                             return true;
                           })
                  .ok());
  ASSERT_EQ(stacks.size(), 2u);
  EXPECT_EQ(stacks[0].error(), kNotConnected);
  EXPECT_EQ(stacks[1].rank(), 1);
}

TEST_F(StackDeskTest, RequestsOfIncidentsAndOfPeopleShareOneCounter) {
  std::set<uint64_t> numbers;
  int sent = 0;
  send_ = [&](const v1::TakeStacks& take) {
    ++sent;
    numbers.insert(take.request());
    return false;
  };
  LookUntilConfirmed();
  v1::TakeStacksRequest request;
  request.set_job("job");
  ASSERT_TRUE(desk_->Stream(kJob, request, [](const v1::ProcessStack&) { return true; }).ok());
  EXPECT_GE(sent, 2);
  EXPECT_EQ(numbers.size(), static_cast<size_t>(sent));
}

v1::ProcessStack Sample(const std::string& function) {
  v1::ProcessStack stack;
  stack.set_host("node");
  stack.set_pid(1);
  stack.add_threads()->add_frames()->set_function(function);
  return stack;
}

v1::ProcessStack Failure() {
  v1::ProcessStack stack;
  stack.set_host("node");
  stack.set_pid(1);
  stack.set_error(kNotConnected);
  return stack;
}

TEST(IncidentStacksTest, AFailureTakesNoSamplesPlace) {
  v1::Incident incident;
  AddSample(Sample("first"), &incident);
  AddSample(Sample("second"), &incident);
  AddFailure(Failure(), &incident);
  ASSERT_EQ(incident.stacks_size(), 2);
  EXPECT_EQ(incident.stacks(0).threads(0).frames(0).function(), "first");
  EXPECT_EQ(incident.stacks(1).threads(0).frames(0).function(), "second");
}

TEST(IncidentStacksTest, AFailureGivesWayToASampleFirst) {
  v1::Incident incident;
  AddSample(Sample("first"), &incident);
  AddFailure(Failure(), &incident);
  AddSample(Sample("second"), &incident);
  ASSERT_EQ(incident.stacks_size(), 2);
  EXPECT_EQ(incident.stacks(0).threads(0).frames(0).function(), "first");
  EXPECT_EQ(incident.stacks(1).threads(0).frames(0).function(), "second");
}

TEST(IncidentStacksTest, AFailureIsRecordedOnce) {
  v1::Incident incident;
  AddFailure(Failure(), &incident);
  AddFailure(Failure(), &incident);
  EXPECT_EQ(incident.stacks_size(), 1);
}

TEST(IncidentStacksTest, AFailureBetweenTwoSamplesDoesNotHideThatAProcessMoves) {
  v1::Incident incident;
  AddSample(Sample("first"), &incident);
  AddFailure(Failure(), &incident);
  EXPECT_EQ(ChangeSince(incident, Sample("second")).motion, Motion::kMoving);
}

}  // namespace
}  // namespace rollcall

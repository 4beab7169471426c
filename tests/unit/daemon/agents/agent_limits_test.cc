// SPDX-License-Identifier: Apache-2.0
// What one agent may bring: times, texts, sizes of messages, streams; and what happens beyond.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "agent_streams.h"
#include "eventually.h"

namespace rollcall {
namespace {

class AgentLimitsTest : public AgentServiceTest {};

TEST_F(AgentLimitsTest, NoTimeOfATickIsTooLargeToAddOrSubtract) {
  constexpr int64_t kLatestNs = int64_t{1} << 61;
  v1::Tick tick;
  tick.set_now_ns(INT64_MIN);
  v1::ProcessUpdate* process = tick.add_processes();
  process->mutable_identity()->set_started_ns(INT64_MAX);
  process->mutable_evidence()->set_ended_ns(INT64_MIN);
  process->mutable_evidence()->add_blocked()->set_since_ns(INT64_MAX);
  v1::CommUpdate* comm = process->add_communicators();
  comm->set_waiting_since_ns(INT64_MAX);
  comm->set_state_since_ns(5);
  for (const int64_t delta_ns : {int64_t{100}, INT64_MAX, INT64_MIN, int64_t{7}}) {
    comm->mutable_records()->add_entered_delta_ns(delta_ns);
    comm->mutable_records()->add_duration_ns(delta_ns);
  }
  HandMadeAgent agent(server_.get());
  agent.Hello("node-1");
  agent.Send(tick);
  sink_.Await(2);
  const v1::Tick came = sink_.newest();
  EXPECT_EQ(came.now_ns(), 0);
  ASSERT_EQ(came.processes_size(), 1);
  EXPECT_EQ(came.processes(0).identity().started_ns(), kLatestNs);
  EXPECT_EQ(came.processes(0).evidence().ended_ns(), 0);
  EXPECT_EQ(came.processes(0).evidence().blocked(0).since_ns(), kLatestNs);
  const v1::CommUpdate& update = came.processes(0).communicators(0);
  EXPECT_EQ(update.waiting_since_ns(), kLatestNs);
  EXPECT_EQ(update.state_since_ns(), 5);
  int64_t entered_ns = 0;
  for (int i = 0; i < 4; ++i) {
    entered_ns += update.records().entered_delta_ns(i);
    EXPECT_GE(entered_ns, 0);
    EXPECT_LE(entered_ns + update.records().duration_ns(i), kLatestNs);
  }
  EXPECT_EQ(entered_ns, 7);
  EXPECT_EQ(update.records().duration_ns(2), -1) << "the call has not returned";
}

TEST_F(AgentLimitsTest, CutsAndCountsALongHostNameAndId) {
  HandMadeAgent agent(server_.get());
  agent.Hello(std::string(1000, 'h'), 1, std::string(1000, 'i'));
  sink_.Await(1);
  EXPECT_EQ(sink_.connected(0).host, std::string(limits::kName, 'h'));
  EXPECT_EQ(sink_.connected(0).id,
            "here " + std::string(limits::kName, 'h') + " " + std::string(limits::kAgentId, 'i'));
  EXPECT_EQ(counters_.Get().dropped[static_cast<size_t>(Dropped::kTexts)], 2u);
  agent.Finish();
}

TEST_F(AgentLimitsTest, AHelloOfAMegabyteIsRefused) {
  HandMadeAgent agent(server_.get());
  agent.Hello(std::string(1 << 20, 'n'));
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(sink_.events(), Events{});
}

// 3,000,000 empty communicators of one process: 6 MB that would become 1,100.
TEST_F(AgentLimitsTest, AMessageThatBecomesHundredsOfMegabytesIsNotParsed) {
  HandMadeAgent agent(server_.get());
  agent.Hello("node");
  sink_.Await(1);
  std::string communicators;
  for (int i = 0; i < 3'000'000; ++i) communicators += std::string("\x2a\x00", 2);
  std::string process = "\x1a";
  for (size_t size = communicators.size(); size > 0; size >>= 7) {
    process += static_cast<char>(size < 128 ? size : size % 128 + 128);
  }
  agent.SendTickOf(process + communicators);
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  sink_.Await(2);
  EXPECT_EQ(sink_.events(), (Events{"connected node", "gone node"}));
}

// A tick that becomes so large that no other one may be parsed beside it.
std::string TickThatTakesAllRoom() {
  std::string communicators;
  for (int i = 0; i < 600'000; ++i) communicators += std::string("\x2a\x00", 2);
  std::string process = "\x1a";
  for (size_t size = communicators.size(); size > 0; size >>= 7) {
    process += static_cast<char>(size < 128 ? size : size % 128 + 128);
  }
  return process + communicators;
}

TEST(UnparsedMessagesTest, AnAgentWithTooManyUnparsedMessagesLosesAStream) {
  RecordingSink sink;
  sink.HoldTicks();
  StreamLimits limits;
  limits.unparsed_bytes = 4 << 20;
  AgentService service(&sink, nullptr, nullptr, limits);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(16 << 20);
  builder.RegisterService(service.service());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  HandMadeAgent first(server.get()), second(server.get()), third(server.get());
  first.Hello("first");
  second.Hello("second");
  third.Hello("third");
  sink.Await(3);
  first.SendTickOf(TickThatTakesAllRoom());
  sink.Await(4);
  v1::Tick large;
  large.set_now_ns(1);
  large.add_processes()->mutable_identity()->set_command(std::string(2'200'000, 'c'));
  second.Send(large);
  third.Send(large);
  // One of the two that wait is too much.
  sink.Await(5);
  const bool is_third = sink.events().back() == "gone third";
  EXPECT_TRUE(is_third || sink.events().back() == "gone second") << sink.events().back();
  HandMadeAgent& refused = is_third ? third : second;
  EXPECT_EQ(refused.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  sink.Apply();
  sink.Await(6);
  EXPECT_EQ(sink.events().back(), is_third ? "tick second" : "tick third");
  sink.Apply();
  service.CloseAll();
  server->Shutdown(std::chrono::system_clock::now());
  server->Wait();
}

TEST_F(AgentLimitsTest, RefusesAndCountsOneStreamTooMany) {
  grpc::ServerBuilder builder;
  AgentService service(&sink_, &counters_, nullptr, {2, 1});
  builder.RegisterService(service.service());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  {
    HandMadeAgent first(server.get());
    first.Hello("first");
    sink_.Await(1);
    HandMadeAgent silent(server.get());  // a stream without a hello counts too
    ASSERT_TRUE(Eventually([&] { return service.streams() == 2; }));
    const grpc::Status refused = HandMadeAgent(server.get()).Finish();
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(refused.error_message(),
              "this daemon serves 2 agents already: raise rollcalld --max-streams");
    EXPECT_EQ(counters_.Get().dropped[static_cast<size_t>(Dropped::kStreams)], 1u);
    EXPECT_TRUE(first.Finish().ok());
    silent.Finish();
  }
  ASSERT_TRUE(Eventually([&] { return service.streams() == 0; }));
  HandMadeAgent later(server.get());
  later.Hello("later");
  sink_.Await(3);
  EXPECT_EQ(sink_.events().back(), "connected later");
  later.Finish();
  server->Shutdown(std::chrono::system_clock::now());
  server->Wait();
}

TEST_F(AgentLimitsTest, EndsAndCountsTheStreamOfAnAgentThatDoesNotRead) {
  constexpr int kMany = 20'000;
  HandMadeAgent agent(server_.get()), other(server_.get());
  agent.Hello("node");
  sink_.Await(1);
  other.Hello("other");
  sink_.Await(2);
  v1::DaemonMessage request;
  int sent = 0;
  while (sent < kMany && service_.Send(sink_.connected(0).id, request)) ++sent;
  EXPECT_LT(sent, kMany);
  EXPECT_GT(sent, 100);  // a burst of requests is not a reason
  EXPECT_FALSE(service_.Send(sink_.connected(0).id, request));
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(counters_.Get().dropped[static_cast<size_t>(Dropped::kStreams)], 1u);
  EXPECT_TRUE(service_.Send(sink_.connected(1).id, request));
  EXPECT_TRUE(other.Finish().ok());
}

}  // namespace
}  // namespace rollcall

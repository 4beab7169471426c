// SPDX-License-Identifier: Apache-2.0
// The daemon's end of the agents' streams: connected and disconnected agents.
#include "daemon/agents/agent_service.h"

#include <gtest/gtest.h>

#include <thread>

#include "agent_streams.h"

namespace rollcall {
namespace {

TEST_F(AgentServiceTest, AnAgentConnectsTicksAndDisconnects) {
  HandMadeAgent agent(server_.get());
  agent.Hello("node");
  agent.Tick();
  sink_.Await(2);
  EXPECT_EQ(service_.agents(), 1);
  EXPECT_TRUE(agent.Finish().ok());
  sink_.Await(3);
  EXPECT_EQ(sink_.events(), (Events{"connected node", "tick node", "gone node"}));
  EXPECT_EQ(service_.agents(), 0);
}

TEST_F(AgentServiceTest, ReadsNoTickBeforeTheLastOneIsApplied) {
  sink_.HoldTicks();
  HandMadeAgent slow(server_.get()), other(server_.get());
  slow.Hello("slow");
  sink_.Await(1);
  slow.Tick();
  sink_.Await(2);
  std::thread second_tick([&] { slow.Tick(); });  // waits for the daemon
  other.Hello("other");
  sink_.Await(3);
  other.Tick();
  sink_.Await(4);
  EXPECT_EQ(sink_.events(),
            (Events{"connected slow", "tick slow", "connected other", "tick other"}));
  sink_.Apply();
  sink_.Await(5);
  EXPECT_EQ(sink_.events().back(), "tick slow");
  second_tick.join();
  sink_.Apply();
  slow.Finish();
  other.Finish();
}

TEST_F(AgentServiceTest, AStreamMayEndBeforeItsTickIsApplied) {
  sink_.HoldTicks();
  {
    HandMadeAgent agent(server_.get());
    agent.Hello("node");
    agent.Tick();
    sink_.Await(2);
    service_.CloseAll();
    EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  sink_.Await(3);
  EXPECT_EQ(sink_.events().back(), "gone node");
  sink_.Apply();
}

TEST_F(AgentServiceTest, IgnoresTicksBeforeTheHello) {
  HandMadeAgent agent(server_.get());
  agent.Tick();
  agent.Tick();
  agent.Hello("node");
  sink_.Await(1);
  EXPECT_EQ(sink_.events(), Events{"connected node"});
  agent.Finish();
}

TEST_F(AgentServiceTest, AnotherProtocolIsRefused) {
  HandMadeAgent agent(server_.get());
  agent.Hello("node", 99);
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(sink_.events(), Events{});
}

// Two `rollcall run --daemon=...` on one machine.
TEST_F(AgentServiceTest, TreatsTwoAgentsOfAHostSeparately) {
  HandMadeAgent older(server_.get()), newer(server_.get());
  older.Hello("node");
  sink_.Await(1);
  newer.Hello("node");
  sink_.Await(2);
  EXPECT_EQ(service_.agents(), 2);
  EXPECT_NE(sink_.connected(0).id, sink_.connected(1).id);
  v1::DaemonMessage request, received;
  request.mutable_take_stacks()->set_request(7);
  EXPECT_TRUE(service_.Send(sink_.connected(0).id, request));
  while (older.Read(&received) && !received.has_take_stacks()) {
  }
  EXPECT_EQ(received.take_stacks().request(), 7u);
  newer.Finish();
  sink_.Await(3);
  EXPECT_EQ(sink_.events().back(), "gone node");
  EXPECT_FALSE(service_.Send(sink_.connected(1).id, request));
  older.Tick();
  sink_.Await(4);
  EXPECT_EQ(sink_.events().back(), "tick node");
  older.Finish();
  sink_.Await(5);
  EXPECT_EQ(sink_.events().back(), "gone node");
}

TEST_F(AgentServiceTest, TheHelloHasTheTickIntervalAndTheId) {
  HandMadeAgent first(server_.get()), again(server_.get());
  first.Hello("node", 1, "node/17");
  sink_.Await(1);
  again.Hello("node", 1, "node/17");
  sink_.Await(2);
  EXPECT_EQ(sink_.connected(0).tick_ns, 50'000'000);
  EXPECT_EQ(sink_.connected(0).id, sink_.connected(1).id);
  EXPECT_TRUE(sink_.connected(0).is_trusted);  // it runs in this process
}

TEST_F(AgentServiceTest, RestartEndsTheAgentsStream) {
  HandMadeAgent agent(server_.get());
  agent.Hello("node", 1, "node/17");
  sink_.Await(1);
  service_.Restart(sink_.connected(0).id);
  EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::CANCELLED);
  service_.Restart("nobody");
}

TEST_F(AgentServiceTest, RefusesASecondHello) {
  {
    HandMadeAgent agent(server_.get());
    agent.Hello("one");
    sink_.Await(1);
    agent.Hello("two");
    EXPECT_EQ(agent.Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  }
  sink_.Await(2);
  EXPECT_EQ(sink_.events(), (Events{"connected one", "gone one"}));
  EXPECT_FALSE(service_.Send("two", v1::DaemonMessage()));
  EXPECT_FALSE(service_.Send("one", v1::DaemonMessage()));
}

TEST_F(AgentServiceTest, SendFailsForAnAgentThatIsNotConnected) {
  EXPECT_FALSE(service_.Send("nobody", v1::DaemonMessage()));
}

TEST_F(AgentServiceTest, ClosingEndsEveryStream) {
  HandMadeAgent one(server_.get()), two(server_.get());
  one.Hello("one");
  two.Hello("two");
  sink_.Await(2);
  service_.CloseAll();
  EXPECT_EQ(one.Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(two.Finish().error_code(), grpc::StatusCode::CANCELLED);
  sink_.Await(4);
  EXPECT_EQ(service_.agents(), 0);
}

}  // namespace
}  // namespace rollcall

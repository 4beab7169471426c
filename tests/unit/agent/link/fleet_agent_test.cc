// SPDX-License-Identifier: Apache-2.0
// An agent whose jobs have several daemons, with real streams to daemons in this process.
#include "agent/link/fleet_agent.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "agent/link/fleet_channels.h"
#include "base/rendezvous.h"
#include "collector_fixture.h"
#include "eventually.h"
#include "fake_daemon.h"
#include "frozen_way.h"
#include "test_authority.h"

namespace rollcall {
namespace {

using std::chrono::steady_clock;

// A job that prefers the daemon among these; `number`: which of them.
std::string JobFor(const std::string& daemon, const std::vector<std::string>& among,
                   int number = 0) {
  for (int i = 0;; ++i) {
    const std::string job = absl::StrCat("job-", i);
    if (among[PreferredDaemon(among, "default", job)] == daemon && number-- == 0) return job;
  }
}

// Remembers what the agent passes on.
class Sink : public HostHangsSink {
 public:
  void Set(const void* source, const v1::HostHangs& hangs) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::set<std::string>& incidents = incidents_[source];
    incidents.clear();
    for (const auto& hang : hangs.hangs()) incidents.insert(hang.incident());
  }
  void Drop(const void* source) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    incidents_.erase(source);
  }
  // Of all streams.
  std::set<std::string> incidents() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::set<std::string> all;
    for (const auto& [source, incidents] : incidents_)
      all.insert(incidents.begin(), incidents.end());
    return all;
  }

 private:
  mutable std::mutex mutex_;
  std::map<const void*, std::set<std::string>> incidents_;
};

v1::HostHangs Hangs(const std::vector<std::pair<std::string, pid_t>>& incidents) {
  v1::HostHangs hangs;
  for (const auto& [incident, pid] : incidents) {
    hangs.add_hangs()->set_incident(incident);
    hangs.mutable_hangs()->rbegin()->add_pids(pid);
  }
  return hangs;
}

class FleetAgentTest : public CollectorTest {
 protected:
  // A process with a segment of the job.
  void AddProcess(const std::string& job) {
    children_.push_back(std::make_unique<Child>());
    SegmentBuilder segment;
    strncpy(segment.header()->job, job.c_str(), sizeof(segment.header()->job) - 1);
    segment.AddAllReduce(segment.AddComm(5, 0, 2), 5000);
    WriteSegment(*children_.back(), &segment);
  }

  void StartAgent(const std::string& list, const HostResolver& resolve = ResolveHost,
                  int64_t keep_unneeded_ns = 30'000'000'000) {
    DaemonAddress daemon;
    daemon.address = list;
    daemon.tls_ca = tls_ca_;
    const auto channels = DaemonChannels::Open(daemon);
    ASSERT_TRUE(channels.ok()) << channels.status();
    AgentOptions agent;
    agent.collector = Options();
    agent.host = "node-1";
    agent.tick_ns = 50'000'000;
    agent.host_hangs = sink_;
    FleetAgentOptions options = MakeFleetAgentOptions(agent, *channels, resolve);
    options.keep_unneeded_ns = keep_unneeded_ns;
    agent_ = std::make_unique<FleetAgent>(options);
    agent_->Start();
  }
  void TearDown() override {
    agent_.reset();
    children_.clear();
    CollectorTest::TearDown();
  }

  std::string tls_ca_;  // file; empty without TLS
  std::vector<std::unique_ptr<Child>> children_;
  std::unique_ptr<FleetAgent> agent_;
  std::shared_ptr<Sink> sink_;  // nullptr if it wants to hear of no hangs
};

// Else an agent that may speak for every host could have this one marked.
TEST_F(FleetAgentTest, PassesOnOnlyHangsOfProcessesThatItReportsItself) {
  FakeDaemon daemon;
  AddProcess("train");
  daemon.SayHangs(Hangs({{"forged", getpid()}, {"own", children_.back()->pid()}}));
  sink_ = std::make_shared<Sink>();
  StartAgent(daemon.address());
  ASSERT_TRUE(Eventually([&] { return !sink_->incidents().empty(); }));
  EXPECT_EQ(sink_->incidents(), std::set<std::string>{"own"});
}

TEST_F(FleetAgentTest, WithdrawsWhatADaemonSaidWhenItsStreamEnds) {
  FakeDaemon daemon;
  AddProcess("train");
  daemon.SayHangs(Hangs({{"own", children_.back()->pid()}}));
  sink_ = std::make_shared<Sink>();
  StartAgent(daemon.address());
  ASSERT_TRUE(Eventually([&] { return !sink_->incidents().empty(); }));
  daemon.Kill();
  EXPECT_TRUE(Eventually([&] { return sink_->incidents().empty(); }));
}

TEST_F(FleetAgentTest, AsksForHangsOnlyWithAReceiver) {
  FakeDaemon daemon;
  AddProcess("train");
  StartAgent(daemon.address());
  ASSERT_TRUE(Eventually([&] { return daemon.ticks() > 0; }));
  EXPECT_FALSE(daemon.hello().wants_host_hangs());
}

// Three daemons that name each other.
class ThreeDaemonsTest : public FleetAgentTest {
 protected:
  ThreeDaemonsTest() {
    for (FakeDaemon* daemon : All()) addresses_.push_back(daemon->address());
    for (FakeDaemon* daemon : All()) daemon->NameDaemons(addresses_);
  }

  std::vector<FakeDaemon*> All() { return {&a_, &b_, &c_}; }
  std::string JobOf(const FakeDaemon& daemon, int number = 0) const {
    return JobFor(daemon.address(), addresses_, number);
  }
  // The daemon that the job prefers when `gone` is dead.
  FakeDaemon* NextFor(const std::string& job, const FakeDaemon& gone) {
    std::vector<FakeDaemon*> rest;
    std::vector<std::string> addresses;
    for (FakeDaemon* daemon : All()) {
      if (daemon == &gone) continue;
      rest.push_back(daemon);
      addresses.push_back(daemon->address());
    }
    return rest[PreferredDaemon(addresses, "default", job)];
  }

  FakeDaemon a_, b_, c_;
  std::vector<std::string> addresses_;
};

TEST_F(ThreeDaemonsTest, ReportsEachJobToTheDaemonThatItPrefers) {
  for (const FakeDaemon* daemon : All()) AddProcess(JobOf(*daemon));
  StartAgent(absl::StrJoin(addresses_, ","));
  for (const FakeDaemon* daemon : All()) {
    EXPECT_TRUE(Eventually([&] { return daemon->Has(JobOf(*daemon)); }));
  }
  for (const FakeDaemon* daemon : All()) {
    EXPECT_EQ(daemon->jobs(), std::set<std::string>{JobOf(*daemon)});
    EXPECT_EQ(daemon->streams(), 1u);
    EXPECT_TRUE(daemon->hello().follows_owners());
    EXPECT_EQ(daemon->hello().host(), "node-1");
  }
}

TEST_F(ThreeDaemonsTest, LearnsOfTheOthersFromTheOneThatItIsGiven) {
  for (const FakeDaemon* daemon : All()) AddProcess(JobOf(*daemon));
  StartAgent(a_.address());
  for (const FakeDaemon* daemon : All()) {
    EXPECT_TRUE(Eventually([&] { return daemon->Has(JobOf(*daemon)); }));
  }
}

TEST_F(ThreeDaemonsTest, HasOneStreamWhileTheHostHasNoJob) {
  StartAgent(absl::StrJoin(addresses_, ","));
  EXPECT_TRUE(Eventually([&] { return a_.ticks() + b_.ticks() + c_.ticks() > 10; }));
  EXPECT_EQ(a_.streams() + b_.streams() + c_.streams(), 1u);
  EXPECT_EQ(agent_->Connected().size(), 1u);
}

TEST_F(ThreeDaemonsTest, MovesOnlyTheJobThatADaemonGivesToAnother) {
  const std::string moved = JobOf(a_, 0), stays = JobOf(a_, 1);
  a_.SayOwner(moved, b_.address());
  b_.SayOwner(moved, "");
  AddProcess(moved);
  AddProcess(stays);
  StartAgent(absl::StrJoin(addresses_, ","));
  EXPECT_TRUE(Eventually([&] { return b_.Has(moved) && a_.Has(stays) && !a_.Has(moved); }));
  EXPECT_FALSE(b_.Has(stays));
}

TEST_F(ThreeDaemonsTest, MovesTheJobsOfADeadDaemon) {
  for (const FakeDaemon* daemon : All()) AddProcess(JobOf(*daemon));
  StartAgent(absl::StrJoin(addresses_, ","));
  ASSERT_TRUE(
      Eventually([&] { return a_.Has(JobOf(a_)) && b_.Has(JobOf(b_)) && c_.Has(JobOf(c_)); }));
  const auto killed = steady_clock::now();
  a_.Kill();
  const FakeDaemon* next = NextFor(JobOf(a_), a_);
  EXPECT_TRUE(Eventually([&] { return next->Has(JobOf(a_)); }));
  const auto took = steady_clock::now() - killed;
  RecordProperty("moved_after_ms", std::to_string(took / std::chrono::milliseconds(1)));
  EXPECT_TRUE(b_.Has(JobOf(b_)));
  EXPECT_TRUE(c_.Has(JobOf(c_)));
}

TEST_F(ThreeDaemonsTest, GoesBackToADaemonThatReturns) {
  AddProcess(JobOf(a_));
  StartAgent(absl::StrJoin(addresses_, ","));
  ASSERT_TRUE(Eventually([&] { return a_.Has(JobOf(a_)); }));
  a_.Kill();
  const FakeDaemon* next = NextFor(JobOf(a_), a_);
  ASSERT_TRUE(Eventually([&] { return next->Has(JobOf(a_)); }));
  a_.Start();
  EXPECT_TRUE(Eventually([&] { return a_.Has(JobOf(a_)) && !next->Has(JobOf(a_)); }));
}

// The connection stays open, so that only a lack of answers shows the loss. Calm pings would take
// minutes to find it (daemon_channel.cc).
TEST_F(ThreeDaemonsTest, MovesTheJobsOfADaemonThatFallsSilent) {
  FakeDaemon silent;
  FrozenWay way(silent.port());
  const std::vector<std::string> all = {way.address(), b_.address()};
  silent.NameDaemons(all, way.address());
  b_.NameDaemons(all);
  const std::string job = JobFor(way.address(), all);
  AddProcess(job);
  StartAgent(absl::StrJoin(all, ","));
  ASSERT_TRUE(Eventually([&] { return silent.Has(job); }));
  const auto frozen = steady_clock::now();
  way.Freeze();
  EXPECT_TRUE(Eventually([&] { return b_.Has(job); }));
  const auto took = steady_clock::now() - frozen;
  RecordProperty("moved_after_ms", std::to_string(took / std::chrono::milliseconds(1)));
}

// It is alive, and welcomes no agent.
TEST_F(ThreeDaemonsTest, DoesNotWaitForADaemonThatDoesNotWelcomeIt) {
  FrozenWay way(b_.port());
  way.Freeze();
  const std::vector<std::string> all = {way.address(), b_.address()};
  b_.NameDaemons(all);
  const std::string job = JobFor(way.address(), all);
  AddProcess(job);
  StartAgent(absl::StrJoin(all, ","));
  EXPECT_TRUE(Eventually([&] { return b_.Has(job); }));
}

TEST_F(ThreeDaemonsTest, AsksAgainUntilADaemonTakesTheJobOfADeadOne) {
  const std::string job = JobOf(a_);
  AddProcess(job);
  StartAgent(absl::StrJoin(addresses_, ","));
  ASSERT_TRUE(Eventually([&] { return a_.Has(job); }));
  FakeDaemon* next = NextFor(job, a_);
  next->SayOwner(job, a_.address());
  a_.Kill();
  ASSERT_TRUE(Eventually([&] { return next->Has(job); }));
  const int before = next->whole_ticks();
  EXPECT_TRUE(Eventually([&] { return next->whole_ticks() >= before + 2; }));
  EXPECT_TRUE(next->Has(job));
  next->SayOwner(job, "");
  const int refused = next->whole_ticks();
  ASSERT_TRUE(Eventually([&] { return next->whole_ticks() > refused; }));
  const int taken = next->whole_ticks(), ticks = next->ticks();
  ASSERT_TRUE(Eventually([&] { return next->ticks() > ticks + 40; }));  // two seconds
  EXPECT_LE(next->whole_ticks(), taken + 1);
}

TEST_F(ThreeDaemonsTest, ClosesStreamsThatNothingNeeds) {
  const std::string job = JobOf(a_);
  a_.SayOwner(job, b_.address());
  b_.SayOwner(job, "");
  AddProcess(job);
  StartAgent(absl::StrJoin(addresses_, ","), ResolveHost, /*keep_unneeded_ns=*/0);
  EXPECT_TRUE(Eventually([&] { return b_.Has(job) && a_.streams() + c_.streams() == 0; }));
  EXPECT_EQ(agent_->Connected(), std::vector<std::string>{b_.address()});
}

TEST_F(ThreeDaemonsTest, SendsTheLastTicksOnEveryStream) {
  for (const FakeDaemon* daemon : All()) AddProcess(JobOf(*daemon));
  StartAgent(absl::StrJoin(addresses_, ","));
  ASSERT_TRUE(
      Eventually([&] { return a_.Has(JobOf(a_)) && b_.Has(JobOf(b_)) && c_.Has(JobOf(c_)); }));
  for (const auto& child : children_) child->Exit(0);
  agent_->Stop();
  for (const FakeDaemon* daemon : All()) EXPECT_TRUE(daemon->SawEnd(JobOf(*daemon)));
  EXPECT_TRUE(agent_->seen_communicators());
}

TEST_F(ThreeDaemonsTest, ReportsAJobThatBeganAMomentBeforeTheStop) {
  StartAgent(absl::StrJoin(addresses_, ","));
  ASSERT_TRUE(Eventually([&] { return !agent_->Connected().empty(); }));
  for (const FakeDaemon* daemon : All()) AddProcess(JobOf(*daemon));
  children_.clear();
  agent_->Stop();
  for (const FakeDaemon* daemon : All()) {
    EXPECT_TRUE(Eventually([&] { return daemon->SawEnd(JobOf(*daemon)); }));
  }
}

// A name with two addresses.
std::vector<std::string> ResolveTwo(const std::string& host) {
  if (host != "daemons.test") return {};
  return {"127.0.0.1", "127.0.0.2"};
}

class FleetNamesTest : public FleetAgentTest {};

TEST_F(FleetNamesTest, TakesEachAddressOfANameForADaemon) {
  FakeDaemon one("127.0.0.1");
  FakeDaemon two("127.0.0.2", one.port());
  const std::vector<std::string> all = {one.address(), two.address()};
  AddProcess(JobFor(one.address(), all));
  AddProcess(JobFor(two.address(), all));
  StartAgent(absl::StrCat("daemons.test:", one.port()), ResolveTwo);
  for (const FakeDaemon* daemon : {&one, &two}) {
    EXPECT_TRUE(Eventually([&] { return daemon->Has(JobFor(daemon->address(), all)); }));
    EXPECT_EQ(daemon->jobs().size(), 1u);
  }
}

TEST_F(FleetNamesTest, WantsTheNameInTheCertificateOfEachAddress) {
  const OpensslAuthority authority;
  const TestPair named = authority.Issue("DNS:daemons.test"), other = authority.Issue("DNS:other");
  tls_ca_ = folder_ / "ca.crt";
  std::ofstream(tls_ca_) << authority.pem();
  const auto credentials = [](const TestPair& pair) {
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({pair.key_pem, pair.certificate_pem});
    return grpc::SslServerCredentials(options);
  };
  FakeDaemon one("127.0.0.1", 0, credentials(named));
  FakeDaemon two("127.0.0.2", one.port(), credentials(other));
  AddProcess(JobFor(one.address(), {one.address(), two.address()}));
  AddProcess(JobFor(two.address(), {one.address(), two.address()}));
  StartAgent(absl::StrCat("daemons.test:", one.port()), ResolveTwo);
  EXPECT_TRUE(Eventually([&] { return one.jobs().size() == 2; }));
  EXPECT_EQ(two.ticks(), 0);
}

// Of an older release: it names no daemons, and would end the stream for quick pings.
TEST_F(FleetNamesTest, HasOneStreamForAllJobsToADaemonThatIsAlone) {
  FakeDaemon daemon;
  AddProcess("train");
  AddProcess("");
  StartAgent(daemon.address());
  EXPECT_TRUE(Eventually([&] { return daemon.jobs().size() == 2; }));
  EXPECT_EQ(daemon.streams(), 1u);
  EXPECT_EQ(daemon.whole_ticks(), 1);
}

}  // namespace
}  // namespace rollcall

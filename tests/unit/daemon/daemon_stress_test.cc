// SPDX-License-Identifier: Apache-2.0
// All parts of the daemon at once: mailboxes, workers, incidents, reports, history, page. Agents
// call the daemon as gRPC's threads do, without gRPC, so this test runs under ThreadSanitizer too.
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "base/steady_clock.h"
#include "daemon/daemon.h"
#include "eventually.h"
#include "interpose/segment.h"
#include "rollcall/v1/agent.pb.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

constexpr int kHosts = 4;  // with one rank of each job
constexpr int kHealthyJobs = 6;
constexpr int64_t kTickNs = 20'000'000;
constexpr int kTicksOfStream = 15;
constexpr char kHung[] = "hung";

// A host's agent on a thread of its own. Like a stream, it sends a tick when the last one was
// applied.
class FakeAgent {
 public:
  FakeAgent(Daemon* daemon, int host) : daemon_(daemon), host_(host) {
    thread_ = std::thread([this] { Run(); });
  }
  ~FakeAgent() {
    ending_ = true;
    thread_.join();
  }

  // From now on its streams end again and again.
  void BeginToReconnect() { reconnects_ = true; }
  uint64_t sent() const { return sent_; }
  uint64_t applied() const { return applied_; }

 private:
  void Run() {
    for (int stream = 0; !ending_; ++stream) {
      const std::string host = absl::StrCat("node-", host_);
      const AgentName name = {host, absl::StrCat(host, "/", stream), kTickNs, false};
      daemon_->agent_sink()->OnConnected(name);
      for (int tick = 0; !ending_ && (tick < kTicksOfStream || !reconnects_); ++tick) {
        Send(name, tick == 0);
      }
      daemon_->agent_sink()->OnStackReply(name, {});  // no caller asked for it
      daemon_->agent_sink()->OnDisconnected(name);
    }
  }

  void Send(const AgentName& name, bool whole) {
    auto tick = std::make_shared<v1::Tick>();
    tick->set_now_ns(SteadyNs());
    tick->set_whole(whole);
    ++calls_;
    AddRank(kHung, host_ == 3 ? 7 : 8, whole, tick.get());
    for (int job = 0; job < kHealthyJobs; ++job) {
      AddRank(absl::StrCat("healthy-", job), calls_, whole, tick.get());
    }
    ++sent_;
    daemon_->agent_sink()->OnTick(name, std::move(tick), [this] { ++applied_; });
    const int64_t next_ns = SteadyNs() + kTickNs;
    while (applied_ != sent_ || SteadyNs() < next_ns) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  void AddRank(const std::string& job, uint64_t entered, bool whole, v1::Tick* tick) const {
    v1::ProcessUpdate* process = tick->add_processes();
    process->set_pid(1000 + static_cast<int>(std::hash<std::string>()(job) % 1000));
    process->set_start_time(1);
    if (whole) {
      process->mutable_identity()->set_job(job);
      process->mutable_identity()->set_global_rank(host_);
      process->mutable_identity()->set_world_size(kHosts);
      process->mutable_identity()->set_has_segment(true);
      process->mutable_identity()->set_started_ns(1);
    }
    process->mutable_evidence()->set_liveness(v1::Evidence::ALIVE);
    v1::CommUpdate* comm = process->add_communicators();
    comm->set_id(std::hash<std::string>()(job));
    comm->set_rank(host_);
    comm->set_size(kHosts);
    comm->set_state(static_cast<uint32_t>(segment::CommState::kReady));
    comm->set_has_markers(true);
    comm->set_entered(entered);
    comm->set_started(entered);
    const bool waits = job == kHung && entered == 8;
    comm->set_finished(waits ? 7 : entered);
    comm->set_signature(segment::kSignatureSeed);
    if (waits) comm->set_waiting_since_ns(began_ns_);
  }

  Daemon* const daemon_;
  const int host_;
  const int64_t began_ns_ = SteadyNs();
  uint64_t calls_ = 0;
  std::atomic<bool> ending_{false}, reconnects_{false};
  std::atomic<uint64_t> sent_{0}, applied_{0};
  std::thread thread_;
};

// Asks for all that the page shows, again and again.
class Viewer {
 public:
  explicit Viewer(const std::string& address) : address_(address) {
    thread_ = std::thread([this] { Run(); });
  }
  ~Viewer() {
    ending_ = true;
    thread_.join();
  }
  int answers() const { return answers_; }
  int failures() const { return failures_; }

 private:
  void Run() {
    httplib::Client client("http://" + address_);
    client.set_read_timeout(60);
    while (!ending_) {
      for (const char* path : {"/api/v1/status", "/api/v1/incidents?with_stacks=true", "/metrics",
                               "/api/v1/job?job=hung", "/api/v1/processes?job=hung", "/healthz"}) {
        const auto answer = client.Get(path);
        ++(answer && answer->status == 200 ? answers_ : failures_);
      }
    }
  }

  const std::string address_;
  std::atomic<bool> ending_{false};
  std::atomic<int> answers_{0}, failures_{0};
  std::thread thread_;
};

class DaemonStressTest : public testing::Test {
 protected:
  // nullptr if it did not start.
  std::unique_ptr<Daemon> StartDaemon() const {
    DaemonOptions options;
    options.limits = LimitsFor(kSecond / 5);
    options.report_dir = tree_.root() + "/reports";
    options.history = tree_.root() + "/history.db";
    options.http = "127.0.0.1:0";
    options.log_incidents = false;
    auto daemon = std::make_unique<Daemon>(options);
    const absl::Status started = daemon->Start();
    EXPECT_TRUE(started.ok()) << started;
    return started.ok() ? std::move(daemon) : nullptr;
  }

  // The reported incident of the hung job, or empty.
  static std::string FindReport(const Daemon& daemon) {
    for (const v1::Incident& incident : daemon.GetIncidents(kHung)) {
      if (incident.has_confirmed_at() && !incident.report_path().empty()) return incident.id();
    }
    return "";
  }

  const TemporaryTree tree_;
};

TEST_F(DaemonStressTest, AllPartsWorkAtOnce) {
  std::set<std::string> reported;
  for (int life = 0; life < 2; ++life) {
    const std::unique_ptr<Daemon> daemon = StartDaemon();
    ASSERT_NE(daemon, nullptr);
    std::vector<std::unique_ptr<FakeAgent>> agents;
    for (int host = 0; host < kHosts; ++host) {
      agents.push_back(std::make_unique<FakeAgent>(daemon.get(), host));
    }
    // Before its first tick, the job for which the viewers ask is unknown.
    EXPECT_TRUE(Eventually([&] { return agents[0]->applied() > 0; }));
    const Viewer one(daemon->http_address()), other(daemon->http_address());
    EXPECT_TRUE(Eventually([&] { return !FindReport(*daemon).empty(); }));
    reported.insert(FindReport(*daemon));
    for (const auto& agent : agents) agent->BeginToReconnect();
    EXPECT_TRUE(Eventually([&] { return agents[0]->sent() > 100 && one.answers() > 20; }));
    for (const int job : {0, kHealthyJobs - 1}) {
      EXPECT_TRUE(daemon->GetIncidents(absl::StrCat("healthy-", job)).empty());
    }
    EXPECT_EQ(one.failures() + other.failures(), 0);
    if (life == 1) daemon->Stop();  // while the agents and viewers go on
    for (const auto& agent : agents)
      EXPECT_TRUE(Eventually([&] { return agent->sent() - agent->applied() <= 1; }));
  }
  EXPECT_EQ(reported.size(), 1u) << "the second daemon continues the incident";
}

}  // namespace
}  // namespace rollcall

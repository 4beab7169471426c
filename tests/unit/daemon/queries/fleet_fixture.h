// SPDX-License-Identifier: Apache-2.0
// Several daemons that answer as one: real gRPC between them on loopback, real jobs and incidents.
// The test is the database that lists them, and their agents.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/access/access.h"
#include "daemon/agents/agent_service.h"
#include "daemon/jobs/call_rate.h"
#include "daemon/queries/fleet_queries.h"
#include "daemon/queries/queries.h"
#include "daemon/queries/query_service.h"
#include "eventually.h"
#include "interpose/segment.h"
#include "net/grpc_server.h"
#include "query_requests.h"
#include "rollcall/v1/agent.grpc.pb.h"
#include "rollcall/v1/query.grpc.pb.h"
#include "security/grpc/credentials.h"
#include "temporary_tree.h"
#include "test_authority.h"

namespace rollcall {

inline constexpr char kAgentId[] = "node/1";

// What the database says; each daemon has its own view of it.
struct Town {
  std::mutex mutex;
  std::vector<DaemonRow> daemons;
  std::map<std::string, std::string> owners;  // of "tenant/job": a daemon's name
};

class ViewOfTown : public FleetView {
 public:
  ViewOfTown(Town* town, std::string self) : town_(town), self_(std::move(self)) {}
  std::vector<DaemonRow> Daemons() const override {
    const std::lock_guard<std::mutex> lock(town_->mutex);
    return town_->daemons;
  }
  std::string self() const override { return self_; }
  std::optional<DaemonRow> OwnerOf(const std::string& tenant,
                                   const std::string& job) const override {
    ++asked;
    const std::lock_guard<std::mutex> lock(town_->mutex);
    const auto owner =
        town_->owners.find(absl::StrCat(tenant.empty() ? kDefaultTenant : tenant, "/", job));
    if (owner == town_->owners.end()) return std::nullopt;
    for (const DaemonRow& daemon : town_->daemons) {
      if (daemon.name == owner->second) return daemon;
    }
    return std::nullopt;
  }
  bool HoldsLease() const override { return true; }

  mutable std::atomic<int> asked{0};

 private:
  Town* const town_;
  const std::string self_;
};

class OwnershipOfTown : public JobOwnership {
 public:
  bool Owns(const JobId&) const override { return true; }
  bool MayAlert(const JobId&) const override { return true; }
  int64_t TokenOf(const JobId&) const override { return 1; }
  bool IsUnproven(const JobId&) const override { return false; }
  FleetJobs CountJobs() const override { return {3, 2, 1, 4}; }
};

// Knows a token for each role: its name.
class ByName : public Authenticator {
 public:
  absl::StatusOr<Identity> Identify(const Presented& presented) const override {
    const std::optional<Role> role = ParseRole(presented.bearer);
    if (!role.has_value()) return absl::UnauthenticatedError("unknown");
    return Identity{"token " + presented.bearer, {*role}, {"node"}, {kAll}, 0, presented.bearer};
  }
  bool IsStillValid(const Identity& /*identity*/) const override { return true; }
};

// The parts of a daemon that answer.
class OneDaemon {
 public:
  // `tls` may be nullptr.
  OneDaemon(Town* town, const std::string& name, std::shared_ptr<const TlsFiles> tls = nullptr)
      : view(town, name), town_(town), name_(name) {
    IncidentBookOptions options;
    options.log_incidents = false;
    incidents_ = std::make_unique<IncidentBook>(options, &timeline_);
    EXPECT_TRUE(incidents_->Start().ok());
    desk_ = std::make_unique<StackDesk>(
        [this](const std::string&, const v1::DaemonMessage& message) {
          return Reply(message.take_stacks());
        },
        &store_, incidents_.get(), &timeline_, &counters_);
    local_ = std::make_unique<Queries>(
        Queries::Parts{&store_, incidents_.get(), desk_.get(), &agents_, &rates_, &past_,
                       &counters_, &timeline_, &refusals_, nullptr, &unrecorded, &looks_});
    PeerOptions peers;
    peers.tls = tls;
    peers.list_patience_ns = peers.patience_ns = 20'000'000'000;  // on a busy machine
    fleet = std::make_unique<FleetQueries>(local_.get(), &view, &ownership, peers);
    const auto keep = [this](const AuditEntry& entry) {
      const std::lock_guard<std::mutex> lock(mutex_);
      audit_.push_back(absl::StrCat(entry.who, ": ", entry.action));
    };
    service_ = std::make_unique<QueryService>(fleet.get(), &access_, keep, keep);
    store_.agents()->Connected(TheAgent());
    access_.SetPeerSecret("secret of " + name);
    access_.SetKnown([this](const std::string& peer) { server_.Admit(peer); });
    EXPECT_TRUE(server_
                    .Start("127.0.0.1:0",
                           tls == nullptr
                               ? grpc::InsecureServerCredentials()
                               : MakeServerCredentials(*tls, ClientCertificate::kOptional),
                           {agents_.service()}, service_->service(), tls != nullptr)
                    .ok());
    DaemonRow row;
    row.name = name;
    row.address = absl::StrCat("127.0.0.1:", server_.port());
    row.incarnation = "1";
    row.secret = "secret of " + name;
    const std::lock_guard<std::mutex> lock(town_->mutex);
    town_->daemons.push_back(row);
  }
  ~OneDaemon() {
    fleet->Close();
    desk_->Close();
    server_.Stop();
    incidents_->Finish(std::chrono::steady_clock::now());
  }

  // An agent reports two ranks of a job, which have one communicator.
  void Report(const std::string& job, const std::string& tenant = kDefaultTenant) {
    v1::Tick tick;
    for (const int rank : {0, 1}) {
      v1::ProcessUpdate* process = tick.add_processes();
      process->set_pid(++last_pid_);
      process->set_start_time(1);
      process->mutable_identity()->set_job(job);
      process->mutable_identity()->set_tenant(tenant);
      process->mutable_identity()->set_global_rank(rank);
      process->mutable_identity()->set_has_segment(true);
      process->mutable_evidence()->set_liveness(v1::Evidence::ALIVE);
      v1::CommUpdate* comm = process->add_communicators();
      comm->set_id(5);
      comm->set_rank(rank);
      comm->set_size(2);
      comm->set_state(static_cast<uint32_t>(segment::CommState::kReady));
      comm->set_signature(segment::kSignatureSeed);
    }
    store_.Apply(TheAgent(), tick, timeline_.Now());
    const std::lock_guard<std::mutex> lock(town_->mutex);
    town_->owners.try_emplace(absl::StrCat(tenant, "/", job), name_);
  }

  // Opens an incident, and returns its id.
  std::string Hang(const std::string& job) {
    Verdict verdict;
    verdict.cause = Cause::kMissingRank;
    verdict.at_once = true;
    verdict.waiting_processes = {0};
    incidents_->Apply(store_.Get(JobKey(job)), {verdict}, timeline_.Now());
    return incidents_->reader().All(job).front().id();
  }

  std::vector<std::string> audit() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return audit_;
  }
  std::shared_ptr<grpc::Channel> Dial() const {
    return grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_.port()),
                               grpc::InsecureChannelCredentials());
  }
  Queries& local() const { return *local_; }

  ViewOfTown view;
  const OwnershipOfTown ownership;
  UnrecordedBook unrecorded;
  std::unique_ptr<FleetQueries> fleet;
  std::atomic<bool> silent_agents{false};  // they answer no look

 private:
  static AgentName TheAgent() { return {"node", kAgentId, 0, true}; }

  bool ReplyToLook(const std::string& agent, const v1::TakeStacks& asked) {
    if (silent_agents) return true;
    for (const v1::ProcessRef& process : asked.processes()) {
      v1::StackReply reply;
      reply.set_request(asked.request());
      reply.set_start_time(process.start_time());
      reply.mutable_stack()->set_pid(process.pid());
      reply.mutable_stack()->add_threads()->set_tid(process.pid());
      AgentName name;
      name.id = agent;
      looks_.OnStackReply(name, reply);
    }
    return true;
  }

  bool Reply(const v1::TakeStacks& asked) {
    for (const v1::ProcessRef& process : asked.processes()) {
      v1::StackReply reply;
      reply.set_request(asked.request());
      reply.set_start_time(process.start_time());
      reply.mutable_stack()->set_pid(process.pid());
      desk_->OnStackReply(TheAgent(), reply);
    }
    return true;
  }

  Town* const town_;
  const std::string name_;
  Timeline timeline_;
  DaemonCounters counters_;
  JobStore store_{"default"};
  CallRates rates_;
  PastViews past_;
  Refusals refusals_;
  FailedLogins failed_logins_;
  ByName authenticator_;
  Access access_{&authenticator_, &refusals_, &failed_logins_};
  AgentService agents_{nullptr, nullptr, &access_, {}};
  GrpcServer server_;
  mutable std::mutex mutex_;
  std::vector<std::string> audit_;
  std::unique_ptr<IncidentBook> incidents_;
  std::unique_ptr<StackDesk> desk_;
  LookDesk looks_{[this](const std::string& agent, const v1::DaemonMessage& message) {
                    return ReplyToLook(agent, message.take_stacks());
                  },
                  &unrecorded, [this] { return look_clock_ns_ += kSecond; }};
  std::atomic<int64_t> look_clock_ns_{1000 * kSecond};  // goes on with each look at it
  std::unique_ptr<Queries> local_;
  std::unique_ptr<QueryService> service_;
  int32_t last_pid_ = 0;
};

class FleetQueriesTest : public testing::Test {
 protected:
  using Names = std::vector<std::string>;

  static Names NamesIn(const v1::StatusResponse& status) {
    Names names;
    for (const v1::JobStatus& job : status.jobs()) {
      names.push_back(absl::StrCat(job.name(), " at ", job.daemon()));
    }
    return names;
  }
  static Names SilentIn(const v1::StatusResponse& status) {
    return {status.silent_daemons().begin(), status.silent_daemons().end()};
  }
  static JobSelector Named(const std::string& job) {
    JobSelector selector;
    selector.job = job;
    return selector;
  }

  // The row of a daemon, to be changed.
  void Change(const std::string& name, const std::function<void(DaemonRow*)>& change) {
    const std::lock_guard<std::mutex> lock(town_.mutex);
    for (DaemonRow& row : town_.daemons) {
      if (row.name == name) change(&row);
    }
  }
  void SetOwner(const std::string& job, const std::string& daemon) {
    const std::lock_guard<std::mutex> lock(town_.mutex);
    town_.owners[absl::StrCat(kDefaultTenant, "/", job)] = daemon;
  }
  void ForgetOwners() {
    const std::lock_guard<std::mutex> lock(town_.mutex);
    town_.owners.clear();
  }

  const AllThreadsEnd threads_;
  Town town_;
  OneDaemon a_{&town_, "a"}, b_{&town_, "b"}, c_{&town_, "c"};
};

}  // namespace rollcall

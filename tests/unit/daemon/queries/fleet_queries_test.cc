// SPDX-License-Identifier: Apache-2.0
// Several daemons that answer as one: real gRPC between them on loopback, real jobs and incidents.
// The test is the database that lists them, and their agents.
#include "daemon/queries/fleet_queries.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/access/access.h"
#include "daemon/access/unknown_calls.h"
#include "daemon/agents/agent_service.h"
#include "daemon/jobs/call_rate.h"
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
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kAgentId[] = "node/1";

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
  // `tls`: nullptr if there is none.
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
    EXPECT_TRUE(
        server_
            .Start("127.0.0.1:0",
                   tls == nullptr ? grpc::InsecureServerCredentials()
                                  : MakeServerCredentials(*tls, ClientCertificate::kOptional),
                   {agents_.service(), service_->service()}, unknown_.service(), tls != nullptr)
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
  UnknownCalls unknown_{&access_};
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

TEST_F(FleetQueriesTest, EveryDaemonListsTheJobsOfAll) {
  a_.Report("m-job");
  b_.Report("z-job");
  b_.Report("b-job");
  c_.Report("n-job");
  for (const OneDaemon* one : {&a_, &b_, &c_}) {
    const v1::StatusResponse status = StatusOf(*one->fleet, {}, false);
    EXPECT_THAT(NamesIn(status),
                ElementsAre("b-job at b", "m-job at a", "n-job at c", "z-job at b"));
    EXPECT_EQ(status.jobs_total(), 4);
    EXPECT_THAT(SilentIn(status), IsEmpty());
    EXPECT_TRUE(status.has_now());
  }
}

// Lists the ranks of a job that runs without the library.
void ListRanks(const std::string& host, int first, int count, UnrecordedBook* book,
               uint32_t uid = 1000) {
  v1::UnrecordedProcesses list;
  for (int rank = first; rank < first + count; ++rank) {
    v1::UnrecordedProcess* process = list.add_processes();
    process->set_pid(100 + rank);
    process->set_start_time(7);
    process->set_script("train.py");
    process->mutable_identity()->set_global_rank(rank);
    process->mutable_identity()->set_world_size(4);
    process->mutable_identity()->set_uid(uid);
    process->add_marks()->set_kind("rendezvous");
  }
  AgentName agent;
  agent.id = agent.host = host;
  book->Set(agent, list);
}

TEST_F(FleetQueriesTest, JoinsAJobWithoutTheLibraryWhateverDaemonsItsAgentsTell) {
  ListRanks("node-1", 0, 2, &a_.unrecorded);
  ListRanks("node-2", 2, 2, &b_.unrecorded);
  ListRanks("node-2", 2, 2, &c_.unrecorded);  // this agent has streams to two daemons
  const v1::StatusResponse status = StatusOf(*c_.fleet, {}, false);
  ASSERT_EQ(status.unrecorded_size(), 1);
  EXPECT_EQ(status.unrecorded(0).ranks(), 4);
  EXPECT_THAT(status.unrecorded(0).hosts(), ElementsAre("node-1", "node-2"));
}

TEST_F(FleetQueriesTest, LooksAtEachHostOfAJobOnceThroughItsDaemon) {
  ListRanks("node-1", 0, 2, &a_.unrecorded);
  ListRanks("node-2", 2, 2, &b_.unrecorded);
  ListRanks("node-2", 2, 2, &c_.unrecorded);
  v1::LookRequest request;
  request.set_job("train.py");
  request.set_apart_ms(2000);
  const auto looks = c_.fleet->LookAtJob(request, [] { return true; });
  ASSERT_TRUE(looks.ok()) << looks.status();
  std::vector<std::string> hosts;
  for (const v1::HostLook& look : *looks) {
    hosts.push_back(look.host());
    EXPECT_EQ(look.error(), "");
    EXPECT_EQ(look.processes_size(), 2);
    EXPECT_EQ(look.processes(0).samples_size(), 3);
  }
  EXPECT_THAT(hosts, testing::UnorderedElementsAre("node-1", "node-2"));
}

TEST_F(FleetQueriesTest, ALookOfAnotherDaemonEndsWhenNoCallerWaitsForIt) {
  ListRanks("node-2", 2, 2, &b_.unrecorded);
  b_.silent_agents = true;
  v1::LookRequest request;
  request.set_job("train.py");
  request.set_apart_ms(2000);
  const auto looks = c_.fleet->LookAtJob(request, [] { return false; });
  EXPECT_TRUE(absl::IsCancelled(looks.status())) << looks.status();
  EXPECT_TRUE(StatusOf(*c_.fleet, {}, false).silent_daemons().empty());
}

TEST_F(FleetQueriesTest, LooksOnlyAtTheHostsThatAreWanted) {
  ListRanks("node-1", 0, 2, &a_.unrecorded);
  ListRanks("node-2", 2, 2, &b_.unrecorded);
  v1::LookRequest request;
  request.set_job("train.py");
  request.set_apart_ms(2000);
  request.add_hosts("node-2");
  const auto looks = c_.fleet->LookAtJob(request, [] { return true; });
  ASSERT_TRUE(looks.ok()) << looks.status();
  ASSERT_EQ(looks->size(), 1u);
  EXPECT_EQ(looks->front().host(), "node-2");
}

TEST_F(FleetQueriesTest, JobsOfTwoUsersWithOneNameAreNotMixed) {
  ListRanks("node-1", 0, 2, &c_.unrecorded);
  ListRanks("node-2", 2, 2, &b_.unrecorded, 1001);
  EXPECT_EQ(StatusOf(*c_.fleet, {}, false).unrecorded_size(), 2);
  v1::LookRequest request;
  request.set_job("train.py");
  request.set_apart_ms(2000);
  const auto looks = c_.fleet->LookAtJob(request, [] { return true; });
  ASSERT_TRUE(looks.ok()) << looks.status();
  ASSERT_EQ(looks->size(), 1u);
  EXPECT_EQ(looks->front().host(), "node-1");
}

TEST_F(FleetQueriesTest, JobsThatHangComeFirstWhicheverDaemonHasThem) {
  a_.Report("a-job");
  b_.Report("b-job");
  c_.Report("z-job");
  c_.Hang("z-job");
  EXPECT_THAT(NamesIn(StatusOf(*a_.fleet)), ElementsAre("z-job at c", "a-job at a", "b-job at b"));
}

TEST_F(FleetQueriesTest, APageIsAPartOfTheWholeListWithItsCommunicators) {
  for (const char* job : {"1", "4", "5"}) a_.Report(job);
  for (const char* job : {"2", "6"}) b_.Report(job);
  c_.Report("3");
  JobSelector page;
  page.offset = 1;
  page.most = 4;
  const v1::StatusResponse status = StatusOf(*a_.fleet, page, true);
  EXPECT_THAT(NamesIn(status), ElementsAre("2 at b", "3 at c", "4 at a", "5 at a"));
  EXPECT_EQ(status.jobs_total(), 6);
  for (const v1::JobStatus& job : status.jobs())
    EXPECT_EQ(job.communicators_size(), 1) << job.name();
  page.offset = 5;
  EXPECT_THAT(NamesIn(StatusOf(*a_.fleet, page, false)), ElementsAre("6 at b"));
  page.offset = 7;
  EXPECT_THAT(NamesIn(StatusOf(*a_.fleet, page, true)), IsEmpty());
}

TEST_F(FleetQueriesTest, AListMayBeLongerThanTheAnswersOfEachDaemon) {
  constexpr int kJobs = 1200;
  for (int i = 0; i < kJobs; ++i) b_.Report(absl::StrCat("b-", 10'000 + i));
  for (const char* job : {"a-1", "c-1"}) a_.Report(job);
  JobSelector page;
  page.offset = kJobs - 1;
  page.most = 10;
  const v1::StatusResponse status = StatusOf(*a_.fleet, page, true);
  EXPECT_THAT(NamesIn(status), ElementsAre("b-11198 at b", "b-11199 at b", "c-1 at a"));
  EXPECT_EQ(status.jobs(0).communicators_size(), 1);
  EXPECT_EQ(status.jobs_total(), kJobs + 2);
  page.offset = 0;
  page.most = kJobs;
  EXPECT_EQ(StatusOf(*a_.fleet, page, false).jobs_size(), static_cast<int>(kMaxJobsListed));
}

TEST_F(FleetQueriesTest, AHostHasItsJobsOfAllDaemons) {
  a_.Report("1");
  b_.Report("2");
  JobSelector on_host;
  on_host.host = "node";
  EXPECT_THAT(NamesIn(StatusOf(*c_.fleet, on_host, false)), ElementsAre("1 at a", "2 at b"));
  on_host.host = "other";
  EXPECT_THAT(NamesIn(StatusOf(*c_.fleet, on_host, false)), IsEmpty());
}

TEST_F(FleetQueriesTest, AJobThatMovesIsListedOnceAsItsOwnerSaysIt) {
  a_.Report("job");
  b_.Report("job");
  SetOwner("job", "b");
  const v1::StatusResponse status = StatusOf(*c_.fleet);
  EXPECT_THAT(NamesIn(status), ElementsAre("job at b"));
  EXPECT_EQ(status.jobs_total(), 1);
}

TEST_F(FleetQueriesTest, ADaemonAloneNamesNoOtherDaemon) {
  a_.Report("job");
  {
    const std::lock_guard<std::mutex> lock(town_.mutex);
    town_.daemons.resize(1);
  }
  EXPECT_THAT(NamesIn(StatusOf(*a_.fleet)), ElementsAre("job at "));
  EXPECT_EQ(JobOf(*a_.fleet, Named("job"))->status().daemon(), "");
}

TEST_F(FleetQueriesTest, AnyDaemonAnswersAboutOneJob) {
  b_.Report("job");
  for (const bool is_owner_known : {true, false}) {
    if (!is_owner_known) ForgetOwners();
    for (const OneDaemon* one : {&a_, &b_}) {
      const FleetQueries& queries = *one->fleet;
      EXPECT_THAT(NamesIn(StatusOf(queries, Named("job"), true)), ElementsAre("job at b"));
      const absl::StatusOr<v1::JobView> view = JobOf(queries, Named("job"));
      ASSERT_TRUE(view.ok()) << view.status();
      EXPECT_EQ(view->status().daemon(), "b");
      v1::ProcessesRequest processes;
      processes.set_job("job");
      EXPECT_EQ(queries.ListProcesses(processes)->total(), 2);
      v1::CallsRequest calls;
      calls.set_job("job");
      calls.add_ranks(1);
      EXPECT_EQ(queries.GetCalls(calls)->ranks_size(), 1);
      v1::CommunicatorRequest communicator;
      communicator.set_job("job");
      communicator.set_id(view->status().communicators(0).id());
      EXPECT_EQ(queries.GetCommunicator(communicator)->total(), 2);
      communicator.set_id("no such");
      EXPECT_THAT(std::string(queries.GetCommunicator(communicator).status().message()),
                  HasSubstr("has no communicator"));
    }
  }
}

TEST_F(FleetQueriesTest, AJobThatThereIsNotIsExplainedByAllThereAre) {
  a_.Report("train");
  b_.Report("evaluate");
  const absl::Status status = JobOf(*c_.fleet, Named("evaluat")).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(),
            "no job \"evaluat\"; did you mean evaluate? jobs here: evaluate, train");
  EXPECT_THAT(NamesIn(StatusOf(*c_.fleet, Named("evaluat"), true)), IsEmpty());
  JobSelector attempt = Named("train");
  attempt.attempt = 7;
  EXPECT_THAT(std::string(JobOf(*c_.fleet, attempt).status().message()),
              HasSubstr("\"train\" has no attempt 7"));
}

TEST_F(FleetQueriesTest, TheOwnerTakesTheStacksForACallerElsewhere) {
  b_.Report("job");
  v1::TakeStacksRequest request;
  request.set_job("job");
  Identity person;
  person.name = "certificate of ann";
  person.roles = {Role::kOperator};
  person.tenants = {kAll};
  const auto seen = a_.fleet->SeenByCaller(person);
  const absl::StatusOr<v1::StacksResponse> stacks = seen->GetStacks(request);
  ASSERT_TRUE(stacks.ok()) << stacks.status();
  EXPECT_EQ(stacks->stacks_size(), 2);
  EXPECT_THAT(b_.audit(), ElementsAre("certificate of ann, through the daemon a: take stacks"));
}

TEST_F(FleetQueriesTest, ACallerSeesElsewhereWhatItsTenantsAllow) {
  a_.Report("a-job", "team-a");
  b_.Report("b-job", "team-a");
  b_.Report("hidden", "team-b");
  const auto seen = a_.fleet->SeenBy(Tenants::Only({"team-a"}));
  const v1::StatusResponse status = StatusOf(*seen);
  EXPECT_THAT(NamesIn(status), ElementsAre("a-job at a", "b-job at b"));
  EXPECT_EQ(status.jobs_total(), 2);
  EXPECT_TRUE(JobOf(*seen, Named("b-job")).ok());
  JobSelector hidden = Named("hidden");
  hidden.tenant = "team-b";
  const absl::Status refused = JobOf(*seen, hidden).status();
  EXPECT_EQ(refused.message(), "no job \"hidden\"; jobs here: team-a/a-job, team-a/b-job");
  v1::TakeStacksRequest stacks;
  stacks.set_job("hidden");
  EXPECT_TRUE(absl::IsNotFound(seen->GetStacks(stacks).status()));
}

TEST_F(FleetQueriesTest, AnAgentSeesElsewhereTheJobsOfItsHosts) {
  b_.Report("job");
  Identity agent;
  agent.name = "token agent";
  agent.roles = {Role::kAgent};
  agent.hosts = {"node"};
  agent.tenants = {kAll};
  EXPECT_THAT(NamesIn(StatusOf(*a_.fleet->SeenByCaller(agent), Named("job"), true)),
              ElementsAre("job at b"));
  agent.hosts = {"other"};
  EXPECT_THAT(NamesIn(StatusOf(*a_.fleet->SeenByCaller(agent), Named("job"), true)), IsEmpty());
}

TEST_F(FleetQueriesTest, ADaemonThatTakesTheCallerForAStrangerIsSilent) {
  a_.Report("1");
  b_.Report("2");
  Change("b", [](DaemonRow* row) { row->secret = "another"; });
  const v1::StatusResponse status = StatusOf(*a_.fleet, {}, false);
  EXPECT_THAT(NamesIn(status), ElementsAre("1 at a"));
  EXPECT_THAT(SilentIn(status), ElementsAre("b"));
  const absl::Status job = JobOf(*a_.fleet, Named("2")).status();
  EXPECT_TRUE(absl::IsUnavailable(job)) << job;
  EXPECT_THAT(std::string(job.message()), HasSubstr("the daemon b ("));
  EXPECT_THAT(std::string(job.message()), testing::Not(HasSubstr("another")));
}

// A connection that is not accepted looks like a daemon that stands still.
class StandingStill {
 public:
  StandingStill() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address_), size), 0);
    EXPECT_EQ(listen(fd_, 16), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address_), &size), 0);
  }
  ~StandingStill() { close(fd_); }
  int port() const { return ntohs(address_.sin_port); }

 private:
  const int fd_;
  sockaddr_in address_ = {};
};

TEST_F(FleetQueriesTest, DaemonsThatDoNotAnswerAreNamedInTime) {
  const StandingStill still;
  a_.Report("1");
  c_.Report("3");
  Change("b", [&](DaemonRow* row) { row->address = absl::StrCat("127.0.0.1:", still.port()); });
  {
    const std::lock_guard<std::mutex> lock(town_.mutex);
    DaemonRow dead;
    dead.name = "d";
    dead.address = "127.0.0.1:1";  // no server listens
    town_.daemons.push_back(dead);
  }
  // Long enough for those that answer, also on a busy machine.
  auto options = PeerOptions();
  options.list_patience_ns = 10 * kSecond;
  const FleetQueries queries(&a_.local(), &a_.view, &a_.ownership, options);
  const auto begun = std::chrono::steady_clock::now();
  const v1::StatusResponse status = StatusOf(queries);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kPatience);
  EXPECT_THAT(NamesIn(status), ElementsAre("1 at a", "3 at c"));
  EXPECT_THAT(SilentIn(status), ElementsAre("b", "d"));
  EXPECT_THAT(std::string(JobOf(queries, Named("2")).status().message()),
              HasSubstr("without the jobs of b, d, which does not answer"));
}

TEST_F(FleetQueriesTest, ADaemonThatHasStartedAgainAnswersAgain) {
  a_.Report("1");
  b_.Report("2");
  const std::string address = town_.daemons[1].address;
  Change("b", [](DaemonRow* row) { row->address = "127.0.0.1:1"; });
  EXPECT_THAT(SilentIn(StatusOf(*a_.fleet, {}, false)), ElementsAre("b"));
  Change("b", [&](DaemonRow* row) {
    row->address = address;
    row->incarnation = "2";
  });
  const v1::StatusResponse status = StatusOf(*a_.fleet, {}, false);
  EXPECT_THAT(NamesIn(status), ElementsAre("1 at a", "2 at b"));
  EXPECT_THAT(SilentIn(status), IsEmpty());
}

// If the asked daemon asked others in turn, two that take each other for the owner would never end.
TEST_F(FleetQueriesTest, ADaemonThatIsAskedByAnotherAsksNoOther) {
  SetOwner("job", "b");
  const int before = b_.view.asked;
  EXPECT_TRUE(absl::IsNotFound(JobOf(*a_.fleet, Named("job")).status()));
  StatusOf(*a_.fleet);
  EXPECT_EQ(b_.view.asked, before);
  EXPECT_THAT(NamesIn(StatusOf(*a_.fleet->own(), {}, false)), IsEmpty());
}

TEST_F(FleetQueriesTest, IncidentsThatAreOpenElsewhereAreInEveryList) {
  a_.Report("1");
  b_.Report("2");
  a_.Hang("1");
  const std::string id = b_.Hang("2");
  for (const bool live_only : {true, false}) {
    v1::ListIncidentsRequest request;
    request.set_live_only(live_only);
    const auto list = a_.fleet->ListIncidents(request);
    ASSERT_TRUE(list.ok()) << list.status();
    EXPECT_EQ(list->incidents_size(), 2);
    EXPECT_EQ(list->total(), 2);
    request.set_job("2");
    EXPECT_EQ(a_.fleet->ListIncidents(request)->incidents_size(), 1);
    EXPECT_EQ(a_.fleet->SeenBy(Tenants::Only({"other"}))->ListIncidents(request)->incidents_size(),
              0);
  }
  EXPECT_EQ(IncidentOf(*a_.fleet, id)->job(), "2");
  EXPECT_TRUE(absl::IsNotFound(IncidentOf(*a_.fleet, "no-such-1").status()));
}

TEST_F(FleetQueriesTest, TheOwnerOfTheJobWritesWhatPeopleAddToAnIncident) {
  b_.Report("job");
  const std::string id = b_.Hang("job");
  const auto acted = Act(a_.fleet.get(), id, "acknowledge", "", "token ann");
  ASSERT_TRUE(acted.ok()) << acted.status();
  EXPECT_EQ(IncidentOf(b_.local(), id)->acknowledged().who(), "token ann");
  EXPECT_THAT(b_.audit(), ElementsAre("token ann, through the daemon a: acknowledge"));
  const absl::Status again = Act(a_.fleet.get(), id, "acknowledge", "", "token bob").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(again)) << again;
  Change("b", [](DaemonRow* row) {
    row->address = "127.0.0.1:1";
    row->incarnation = "2";
  });
  const absl::Status away = Act(a_.fleet.get(), id, "note", "text", "token ann").status();
  EXPECT_FALSE(away.ok());
}

TEST_F(FleetQueriesTest, AViewerLearnsThatAJobElsewhereMayHaveChanged) {
  a_.Report("1");
  b_.Report("2");
  const uint64_t all = a_.fleet->Version(""), own = a_.fleet->Version("1"),
                 other = a_.fleet->Version("2");
  EXPECT_TRUE(
      Eventually([&] { return a_.fleet->Version("") != all && a_.fleet->Version("2") != other; }));
  EXPECT_EQ(a_.fleet->Version("1"), own);
}

TEST_F(FleetQueriesTest, TheMetricsAreOfThisDaemonsJobsAndCountTheOthers) {
  a_.Report("mine");
  b_.Report("yours");
  Change("c", [](DaemonRow* row) { row->address = "127.0.0.1:1"; });
  StatusOf(*a_.fleet, {}, false);
  const std::string text = a_.fleet->GetMetrics(true, {});
  EXPECT_THAT(text, HasSubstr("job=\"mine\""));
  EXPECT_THAT(text, testing::Not(HasSubstr("yours")));
  EXPECT_THAT(text, HasSubstr("rollcall_fleet_daemons{state=\"answers\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("rollcall_fleet_daemons{state=\"silent\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("rollcall_fleet_lease_held 1\n"));
  EXPECT_THAT(text, HasSubstr("rollcall_fleet_jobs{state=\"owned\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("rollcall_fleet_jobs{state=\"sought\"} 4\n"));
  EXPECT_EQ(text.find("# EOF"), text.size() - std::string("# EOF\n").size());
}

// Daemons with certificates of one authority, and one of another.
class FleetTlsTest : public testing::Test {
 protected:
  std::shared_ptr<const TlsFiles> Files(const std::string& name, const OpensslAuthority& authority,
                                        const std::string& sans) {
    const TestPair pair = authority.Issue(sans);
    const std::string base = absl::StrCat(tree_.root(), "/", name);
    tree_.WriteSecret(name + ".crt", pair.certificate_pem);
    tree_.WriteSecret(name + ".key", pair.key_pem);
    tree_.WriteSecret(name + ".ca", authority.pem());
    auto files = std::make_shared<TlsFiles>(
        TlsPaths{base + ".crt", base + ".key", base + ".ca", ""}, CertificateUse::kServer);
    EXPECT_TRUE(files->Poll(time(nullptr)).ok());
    return files;
  }

  const AllThreadsEnd threads_;
  const TemporaryTree tree_;
  const OpensslAuthority ours_{"ours"}, other_{"other"};
  Town town_;
};

TEST_F(FleetTlsTest, AcceptsDaemonsWhoseCertificateNamesTheirAddress) {
  OneDaemon a(&town_, "a", Files("a", ours_, "IP:127.0.0.1"));
  OneDaemon b(&town_, "b", Files("b", ours_, "IP:127.0.0.1"));
  OneDaemon stranger(&town_, "stranger", Files("s", other_, "IP:127.0.0.1"));
  OneDaemon misnamed(&town_, "misnamed", Files("m", ours_, "DNS:elsewhere"));
  for (OneDaemon* one : {&a, &b, &stranger, &misnamed}) one->Report(one->view.self() + "-job");
  const v1::StatusResponse status = StatusOf(*a.fleet);
  ASSERT_EQ(status.jobs_size(), 2);
  EXPECT_EQ(status.jobs(1).name(), "b-job");
  EXPECT_THAT(status.silent_daemons(), ElementsAre("stranger", "misnamed"));
}

// What another daemon may do at this one, call by call.
class PeerAccessTest : public FleetQueriesTest {
 protected:
  static std::unique_ptr<grpc::ClientContext> As(const std::string& secret,
                                                 const std::string& role) {
    auto context = std::make_unique<grpc::ClientContext>();
    context->AddMetadata("authorization", "Bearer " + secret);
    v1::PeerCaller caller;
    caller.set_daemon("a");
    caller.set_name("ann");
    caller.set_role(role);
    caller.add_tenants(kDefaultTenant);
    context->AddMetadata(kPeerCallerKey, caller.SerializeAsString());
    context->set_deadline(std::chrono::system_clock::now() + kPatience);
    return context;
  }
  grpc::StatusCode GetStatus(const std::string& secret, const std::string& role) {
    v1::StatusResponse response;
    return v1::Query::NewStub(b_.Dial())
        ->GetStatus(As(secret, role).get(), v1::StatusRequest(), &response)
        .error_code();
  }
  grpc::StatusCode TakeStacks(const std::string& role) {
    const auto context = As("secret of b", role);
    v1::TakeStacksRequest request;
    request.set_job("job");
    const auto stream = v1::Query::NewStub(b_.Dial())->TakeStacks(context.get(), request);
    v1::ProcessStack stack;
    while (stream->Read(&stack)) continue;
    return stream->Finish().error_code();
  }
};

TEST_F(PeerAccessTest, TheSecretIsThatOfTheAskedDaemon) {
  EXPECT_EQ(GetStatus("secret of b", "viewer"), grpc::StatusCode::OK);
  EXPECT_EQ(GetStatus("secret of a", "viewer"), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(GetStatus("", "viewer"), grpc::StatusCode::UNAUTHENTICATED);
  // A token of a person is not a daemon's, whatever the caller says of itself.
  EXPECT_EQ(GetStatus("viewer", "operator"), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(GetStatus("secret of b", "owner"), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(PeerAccessTest, TheSecretAloneIsNotACredential) {
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer secret of b");
  v1::StatusResponse response;
  EXPECT_EQ(v1::Query::NewStub(b_.Dial())
                ->GetStatus(&context, v1::StatusRequest(), &response)
                .error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(PeerAccessTest, ADaemonMayWhatItsCallerMay) {
  b_.Report("job");
  EXPECT_EQ(TakeStacks("viewer"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(TakeStacks("agent"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(TakeStacks("operator"), grpc::StatusCode::OK);
}

TEST_F(PeerAccessTest, ADaemonIsNotAnAgent) {
  const auto context = As("secret of b", "agent");
  const auto stream = v1::AgentLink::NewStub(b_.Dial())->Connect(context.get());
  v1::DaemonMessage message;
  EXPECT_FALSE(stream->Read(&message));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

}  // namespace
}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
// What a caller may see at other daemons, and what another daemon may do at this one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet_fixture.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class FleetAccessTest : public FleetQueriesTest {};

TEST_F(FleetAccessTest, ACallerSeesElsewhereWhatItsTenantsAllow) {
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

TEST_F(FleetAccessTest, AnAgentSeesElsewhereTheJobsOfItsHosts) {
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

TEST_F(PeerAccessTest, TheSecretAloneIsNoCredential) {
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

TEST_F(PeerAccessTest, ADaemonIsNoAgent) {
  const auto context = As("secret of b", "agent");
  const auto stream = v1::AgentLink::NewStub(b_.Dial())->Connect(context.get());
  v1::DaemonMessage message;
  EXPECT_FALSE(stream->Read(&message));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

}  // namespace
}  // namespace rollcall

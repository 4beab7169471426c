// SPDX-License-Identifier: Apache-2.0
// Real sockets and real handshakes.
#include "security/grpc/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "echo_server.h"
#include "security/certificates/openssl_types.h"
#include "security/connection_probe.h"
#include "temporary_tree.h"
#include "test_chain.h"

namespace rollcall {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// Debian's c-ares, gRPC's usual resolver, leaks some bytes for each name; LeakSanitizer sees them.
const bool kNativeResolver = setenv("GRPC_DNS_RESOLVER", "native", 1) == 0;

constexpr char kViewer[] = "spiffe://rollcall/rollcall/viewer";

class CredentialsTest : public testing::Test {
 protected:
  Validity Today() const { return {now_ - kDay, now_ + kDay}; }
  Validity Yesterday() const { return {now_ - 2 * kDay, now_ - kDay}; }

  // Of files written for the purpose, and read while `pair` was valid.
  std::shared_ptr<TlsFiles> Files(const KeyAndCertificate& pair, const std::string& ca,
                                  CertificateUse use) {
    const std::string folder = absl::StrCat("files-", ++folders_, "/");
    const std::string root = tree_.root() + "/" + folder;
    TlsPaths paths;
    int64_t then_s = now_;
    if (!pair.certificate_pem.empty()) {
      tree_.Write(folder + "tls.crt", pair.certificate_pem);
      tree_.WriteSecret(folder + "tls.key", pair.key_pem);
      paths.certificate = root + "tls.crt";
      paths.key = root + "tls.key";
      then_s = ParseCertificate(pair.certificate_pem)->not_after_s;
    }
    if (!ca.empty()) {
      tree_.Write(folder + "ca.crt", ca);
      paths.authorities = root + "ca.crt";
    }
    auto files = std::make_shared<TlsFiles>(paths, use);
    EXPECT_EQ(files->Poll(then_s), absl::OkStatus());
    return files;
  }
  std::shared_ptr<grpc::ServerCredentials> ServerWith(
      const KeyAndCertificate& pair, ClientCertificate client = ClientCertificate::kOptional) {
    return MakeServerCredentials(*Files(pair, authority_.pem(), CertificateUse::kServer), client);
  }
  ChannelSecurity ClientWith(const KeyAndCertificate& pair, const std::string& ca) {
    return {Files(pair, ca, CertificateUse::kClient), "", "", ""};
  }
  std::string TokenFile(const std::string& text) const {
    tree_.WriteSecret("token", text);
    return tree_.root() + "/token";
  }

  grpc::Status Call(const std::string& address, const ChannelSecurity& security) const {
    const auto channel = MakeChannel(address, OwnConnection(), security);
    if (!channel.ok()) return {grpc::INVALID_ARGUMENT, std::string(channel.status().message())};
    return CallOnce(*channel);
  }
  // Of a call that must fail.
  std::string Explain(const std::string& address, const ChannelSecurity& security) const {
    EXPECT_FALSE(Call(address, security).ok());
    const auto tls = security.tls != nullptr ? security.tls->Current() : nullptr;
    return ExplainFailedConnection(address, tls.get(), security.server_name);
  }

  const int64_t now_ = std::time(nullptr);
  const TestAuthority authority_{Today()};
  const TestAuthority stranger_{Today()};
  const KeyAndCertificate server_pair_ = authority_.Server(Today());
  const KeyAndCertificate viewer_pair_ = authority_.Client(kViewer, Today());
  const KeyAndCertificate nothing_;
  const TemporaryTree tree_;
  int folders_ = 0;
};

TEST_F(CredentialsTest, TheDaemonLearnsTheCertificateAndTheAddress) {
  ASSERT_TRUE(kNativeResolver);
  const EchoServer server(ServerWith(server_pair_));
  const ChannelSecurity client = ClientWith(viewer_pair_, authority_.pem());
  const grpc::Status status = Call(server.address(), client);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(server.last().is_encrypted);
  EXPECT_EQ(ParseCertificate(server.last().certificate_pem)->uris,
            std::vector<std::string>{kViewer});
  EXPECT_THAT(server.last().peer, StartsWith("ipv4:127.0.0.1:"));
  EXPECT_EQ(server.last().bearer, "");
  EXPECT_EQ(ExplainFailedConnection(server.address(), client.tls->Current().get(), ""), "");
}

// The daemon looks again whether the chain of an open connection leads to an authority.
TEST_F(CredentialsTest, TheDaemonLearnsTheChainOfTheCertificate) {
  const KeyAndCertificate root = MakeTestAuthority("Root", nullptr, Today());
  const KeyAndCertificate below = MakeTestAuthority("Below", &root, Today());
  KeyAndCertificate pair = *IssueCertificate(below, {"viewer", {kViewer}, {}, {}, false}, Today());
  pair.certificate_pem += below.certificate_pem;
  const EchoServer server(
      MakeServerCredentials(*Files(server_pair_, root.certificate_pem, CertificateUse::kServer),
                            ClientCertificate::kRequired));
  const grpc::Status status = Call(server.address(), ClientWith(pair, authority_.pem()));
  ASSERT_TRUE(status.ok()) << status.error_message();
  const Presented last = server.last();
  EXPECT_TRUE(last.is_by_client_ca);
  const std::string chain = last.certificate_pem + last.chain_pem;
  EXPECT_EQ(CheckClientChain(chain, root.certificate_pem, now_), absl::OkStatus());
  EXPECT_FALSE(CheckClientChain(chain, authority_.pem(), now_).ok());
}

TEST_F(CredentialsTest, ATokenNeedsNoCertificate) {
  const EchoServer server(ServerWith(server_pair_));
  ChannelSecurity client = ClientWith(nothing_, authority_.pem());
  client.token_file = TokenFile("rollcall_abc\n");
  ASSERT_TRUE(Call(server.address("localhost"), client).ok());
  EXPECT_EQ(server.last().bearer, "rollcall_abc");
  EXPECT_EQ(server.last().certificate_pem, "");
  EXPECT_TRUE(server.last().is_encrypted);
}

TEST_F(CredentialsTest, TheTokenIsReadAgainWhenItChanges) {
  const EchoServer server(ServerWith(server_pair_));
  ChannelSecurity client = ClientWith(nothing_, authority_.pem());
  client.token_file = TokenFile("one");
  const auto channel = MakeChannel(server.address(), OwnConnection(), client).value();
  ASSERT_TRUE(CallOnce(channel).ok());
  TokenFile("two");
  ASSERT_TRUE(CallOnce(channel).ok());
  EXPECT_EQ(server.last().bearer, "two");
  TokenFile("");
  ASSERT_TRUE(CallOnce(channel).ok());
  EXPECT_EQ(server.last().bearer, "two");
}

TEST_F(CredentialsTest, ATokenGoesOverLoopbackWithoutTlsButToNoOtherHost) {
  const EchoServer server(grpc::InsecureServerCredentials());
  const ChannelSecurity client = {nullptr, "", TokenFile("one"), ""};
  ASSERT_TRUE(Call(server.address(), client).ok());
  EXPECT_EQ(server.last().bearer, "one");
  EXPECT_FALSE(server.last().is_encrypted);
  EXPECT_EQ(std::string(MakeChannel("node-1:7655", {}, client).status().message()),
            "a token goes to another host (node-1:7655) by TLS only: add --tls-ca=FILE");
}

TEST_F(CredentialsTest, AFileWithoutATokenIsAnErrorAtOnce) {
  const ChannelSecurity client = {nullptr, "", TokenFile(" \n"), ""};
  EXPECT_THAT(Call("127.0.0.1:1", client).error_message(), HasSubstr("is empty"));
  const ChannelSecurity missing = {nullptr, "", tree_.root() + "/missing", ""};
  EXPECT_THAT(Call("127.0.0.1:1", missing).error_message(), HasSubstr("No such file"));
}

TEST_F(CredentialsTest, IgnoresTwoTokensInOneCall) {
  const EchoServer server(grpc::InsecureServerCredentials());
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer one");
  context.AddMetadata("authorization", "Bearer two");
  v1::StatusResponse response;
  const auto channel = MakeChannel(server.address(), OwnConnection(), {}).value();
  ASSERT_TRUE(v1::Query::NewStub(channel)->GetStatus(&context, {}, &response).ok());
  EXPECT_EQ(server.last().bearer, "");
}

TEST_F(CredentialsTest, ACallInsideTheProcessHasNoPeer) {
  const EchoServer server(grpc::InsecureServerCredentials());
  ASSERT_TRUE(CallOnce(server.InProcess()).ok());
  EXPECT_TRUE(server.last().is_in_process);
  EXPECT_FALSE(server.last().is_encrypted);
}

TEST_F(CredentialsTest, AnAddressOfIpv6HasPlainBrackets) {
  const EchoServer server(grpc::InsecureServerCredentials(), "[::1]:0");
  if (!server.started()) GTEST_SKIP() << "no IPv6 on this host";
  ASSERT_TRUE(Call(server.address("[::1]"), {}).ok());
  EXPECT_THAT(server.last().peer, StartsWith("ipv6:[::1]:"));
}

TEST_F(CredentialsTest, AUnixSocketSaysSo) {
  const std::string address = "unix:" + tree_.root() + "/socket";
  const EchoServer server(grpc::InsecureServerCredentials(), address);
  ASSERT_TRUE(Call(address, {}).ok());
  EXPECT_THAT(server.last().peer, StartsWith("unix:"));
}

TEST_F(CredentialsTest, TheRefusalAsksForACertificate) {
  const EchoServer server(ServerWith(server_pair_, ClientCertificate::kRequired));
  EXPECT_TRUE(Call(server.address(), ClientWith(viewer_pair_, authority_.pem())).ok());
  EXPECT_EQ(Explain(server.address(), ClientWith(nothing_, authority_.pem())),
            "the daemon asks for a certificate: add --tls-cert=FILE --tls-key=FILE");
}

TEST_F(CredentialsTest, RefusesAStrangersCertificateEvenIfNoneIsNeeded) {
  const EchoServer server(ServerWith(server_pair_));
  const KeyAndCertificate pair = stranger_.Client(kViewer, Today());
  EXPECT_THAT(Explain(server.address(), ClientWith(pair, authority_.pem())),
              HasSubstr("its authority is not in the daemon's --tls-client-ca"));
}

TEST_F(CredentialsTest, AnExpiredCertificateOfAClientIsRefused) {
  const EchoServer server(ServerWith(server_pair_));
  const KeyAndCertificate pair = authority_.Client(kViewer, Yesterday());
  EXPECT_THAT(Explain(server.address(), ClientWith(pair, authority_.pem())),
              StartsWith("the certificate of --tls-cert expired on "));
}

TEST_F(CredentialsTest, ADaemonOfAnotherAuthorityIsNotBelieved) {
  const EchoServer server(ServerWith(server_pair_));
  EXPECT_THAT(Explain(server.address(), ClientWith(nothing_, stranger_.pem())),
              HasSubstr("no authority in the file of --tls-ca signed the daemon's certificate"));
}

TEST_F(CredentialsTest, ADaemonOfAnotherNameIsNotBelieved) {
  const EchoServer server(
      ServerWith(authority_.Issue({"d", {}, {"daemon.example"}, {}, /*is_server=*/true}, Today())));
  ChannelSecurity client = ClientWith(viewer_pair_, authority_.pem());
  EXPECT_EQ(Explain(server.address(), client),
            "the daemon's certificate is not for 127.0.0.1, but for daemon.example: use one of "
            "these names, or add --tls-server-name=NAME");
  EXPECT_THAT(Explain(server.address("localhost"), client), HasSubstr("not for localhost"));
  client.server_name = "daemon.example";
  EXPECT_TRUE(Call(server.address(), client).ok());
  EXPECT_TRUE(Call(server.address("localhost"), client).ok());
  client.server_name = "other.example";
  EXPECT_THAT(Explain(server.address(), client), HasSubstr("not for other.example"));
}

TEST_F(CredentialsTest, AnExpiredDaemonIsNotBelieved) {
  const EchoServer server(ServerWith(authority_.Server(Yesterday())));
  EXPECT_THAT(Explain(server.address(), ClientWith(nothing_, authority_.pem())),
              HasSubstr("has expired (the daemon's on"));
}

TEST_F(CredentialsTest, AnAgentCannotPassForADaemon) {
  const KeyAndCertificate agent = authority_.Issue(
      {"a", {"spiffe://rollcall/rollcall/agent"}, {"localhost"}, {"127.0.0.1"}, false}, Today());
  const EchoServer server(MakeServerCredentials(
      *Files(agent, authority_.pem(), CertificateUse::kClient), ClientCertificate::kOptional));
  EXPECT_THAT(Explain(server.address(), ClientWith(nothing_, authority_.pem())),
              HasSubstr("is not for a daemon"));
}

// --- A revoked daemon.
class RevokedDaemonTest : public CredentialsTest {
 protected:
  // The list of the authority, with this certificate in it; empty for a list without certificates.
  void Revoke(const std::string& certificate_pem) {
    std::vector<RevokedSerial> revoked;
    if (!certificate_pem.empty()) {
      revoked.push_back({ParseCertificate(certificate_pem)->serial, now_});
    }
    const auto list = MakeRevocationList(authority_.own(), revoked, ++lists_, Today());
    tree_.Write("ca.crl", list.value());
  }
  // A client that reads this list.
  ChannelSecurity ClientWithList() {
    tree_.Write("ca.crt", authority_.pem());
    files_ = std::make_shared<TlsFiles>(
        TlsPaths{"", "", tree_.root() + "/ca.crt", tree_.root() + "/ca.crl"},
        CertificateUse::kClient);
    EXPECT_EQ(files_->Poll(now_), absl::OkStatus());
    return {files_, "", "", ""};
  }

  std::shared_ptr<TlsFiles> files_;
  int lists_ = 0;
};

TEST_F(RevokedDaemonTest, IsNotBelieved) {
  const EchoServer server(ServerWith(server_pair_));
  Revoke(server_pair_.certificate_pem);
  EXPECT_THAT(Explain(server.address(), ClientWithList()),
              HasSubstr("in the list of --tls-crl: its authority has revoked it"));
  EXPECT_TRUE(Call(server.address(), ClientWith(nothing_, authority_.pem())).ok());
}

TEST_F(RevokedDaemonTest, ANewListCountsForTheNextConnection) {
  const EchoServer server(ServerWith(server_pair_));
  Revoke("");
  const ChannelSecurity client = ClientWithList();
  const auto open = MakeChannel(server.address(), OwnConnection(), client).value();
  EXPECT_TRUE(CallOnce(open).ok());
  Revoke(server_pair_.certificate_pem);
  ASSERT_EQ(files_->Poll(now_), absl::OkStatus());
  EXPECT_FALSE(Call(server.address(), client).ok());
}

// The check of the list takes the place of gRPC's check of the name.
TEST_F(RevokedDaemonTest, ADaemonOfAnotherNameIsNotBelievedEither) {
  const EchoServer server(
      ServerWith(authority_.Issue({"d", {}, {"daemon.example"}, {}, /*is_server=*/true}, Today())));
  Revoke("");
  ChannelSecurity client = ClientWithList();
  EXPECT_THAT(Explain(server.address(), client), HasSubstr("is not for 127.0.0.1"));
  client.server_name = "daemon.example";
  EXPECT_TRUE(Call(server.address(), client).ok());
}

TEST_F(RevokedDaemonTest, TheCertificateOfAnOpenStreamIsKnown) {
  const EchoServer server(ServerWith(server_pair_));
  Revoke("");
  const auto channel = MakeChannel(server.address(), OwnConnection(), ClientWithList()).value();
  grpc::ClientContext context;
  const auto stream = v1::AgentLink::NewStub(channel)->Connect(&context);
  v1::DaemonMessage answer;
  ASSERT_TRUE(stream->Write({}) && stream->Read(&answer));
  const auto list = [&] { return files_->Current()->revocations; };
  EXPECT_FALSE(list().IsRevoked(CertificateOfDaemon(context)));
  Revoke(server_pair_.certificate_pem);
  ASSERT_EQ(files_->Poll(now_), absl::OkStatus());
  EXPECT_TRUE(list().IsRevoked(CertificateOfDaemon(context)));
  context.TryCancel();
  stream->Finish();
}

TEST_F(CredentialsTest, ARefusalAsksAClientWithoutTlsToUseIt) {
  const EchoServer server(ServerWith(server_pair_));
  EXPECT_EQ(Explain(server.address(), {}), "this daemon speaks TLS: add --tls-ca=FILE");
  const EchoServer strict(ServerWith(server_pair_, ClientCertificate::kRequired));
  EXPECT_EQ(Explain(strict.address(), {}), "this daemon speaks TLS: add --tls-ca=FILE");
}

TEST_F(CredentialsTest, ARefusalAsksAClientWithTlsToLeaveItOut) {
  const EchoServer server(grpc::InsecureServerCredentials());
  EXPECT_EQ(Explain(server.address(), ClientWith(nothing_, authority_.pem())),
            "this daemon does not speak TLS: leave out --tls-ca");
}

// Whether a client that knows TLS up to `version` gets a connection.
bool Connects(const std::string& address, int version) {
  const TlsContextPointer context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_security_level(context.get(), 0);  // or OpenSSL itself refuses the old version
  SSL_CTX_set_min_proto_version(context.get(), TLS1_VERSION);
  SSL_CTX_set_max_proto_version(context.get(), version);
  const BioPointer connection(BIO_new_ssl_connect(context.get()));
  BIO_set_conn_hostname(connection.get(), address.c_str());
  SSL* tls = nullptr;
  BIO_get_ssl(connection.get(), &tls);
  constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(tls, kHttp2, sizeof(kHttp2));
  return BIO_do_connect(connection.get()) == 1 && BIO_do_handshake(connection.get()) == 1;
}

TEST_F(CredentialsTest, TheOldestTlsIs12) {
  const EchoServer server(ServerWith(server_pair_));
  EXPECT_TRUE(Connects(server.address(), TLS1_3_VERSION));
  EXPECT_TRUE(Connects(server.address(), TLS1_2_VERSION));
  EXPECT_FALSE(Connects(server.address(), TLS1_1_VERSION));
  EXPECT_FALSE(Connects(server.address(), TLS1_VERSION));
}

TEST_F(CredentialsTest, ExplainsNothingIfNoProgramListens) {
  std::string address;
  {
    const EchoServer server(grpc::InsecureServerCredentials());
    address = server.address();
  }
  EXPECT_EQ(Explain(address, {}), "");
  EXPECT_EQ(Explain(address, ClientWith(nothing_, authority_.pem())), "");
}

TEST_F(CredentialsTest, AServerWithoutAuthoritiesAsksForNoCertificate) {
  const EchoServer server(MakeServerCredentials(*Files(server_pair_, "", CertificateUse::kServer),
                                                ClientCertificate::kRequired));
  ASSERT_TRUE(Call(server.address(), ClientWith(viewer_pair_, authority_.pem())).ok());
  EXPECT_EQ(server.last().certificate_pem, "");
  EXPECT_TRUE(server.last().is_encrypted);
}

TEST_F(CredentialsTest, AChannelWithTlsNeedsAnAuthority) {
  EXPECT_THAT(Call("127.0.0.1:1", ClientWith(viewer_pair_, "")).error_message(),
              HasSubstr("--tls-ca=FILE"));
}

}  // namespace
}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
// Certificate, key and authorities are replaced while streams run and clients connect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <optional>
#include <thread>
#include <vector>

#include "echo_server.h"
#include "eventually.h"
#include "security/certificates/certificate.h"
#include "security/certificates/openssl_types.h"
#include "security/certificates/pem.h"
#include "temporary_tree.h"
#include "test_certificates.h"

namespace rollcall {
namespace {

constexpr int kStreams = 200;
constexpr auto kPollEach = std::chrono::milliseconds(100);

// A stream of an agent on a connection of its own.
class Agent {
 public:
  explicit Agent(const std::shared_ptr<grpc::Channel>& channel)
      : stream_(v1::AgentLink::NewStub(channel)->Connect(&context_)) {}

  bool Exchange() {
    v1::DaemonMessage answer;
    return stream_->Write({}) && stream_->Read(&answer);
  }
  bool End() { return stream_->WritesDone() && stream_->Finish().ok(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::DaemonMessage>> stream_;
};

class RotationTest : public testing::Test {
 protected:
  RotationTest() {
    Write("tls.crt", server_pair_.certificate_pem);
    Write("tls.key", server_pair_.key_pem);
    Write("ca.crt", authority_.pem());
    Write("client.crt", client_pair_.certificate_pem);
    Write("client.key", client_pair_.key_pem);
    Write("client-ca.crt", authority_.pem());
    EXPECT_EQ(files_.Poll(now_), absl::OkStatus());
    EXPECT_EQ(client_files_->Poll(now_), absl::OkStatus());
    server_.emplace(MakeServerCredentials(files_, ClientCertificate::kRequired));
    poller_ = std::thread([this] {
      while (!stop_) {
        (void)files_.Poll(std::time(nullptr));
        std::this_thread::sleep_for(kPollEach);
      }
    });
  }
  ~RotationTest() override {
    stop_ = true;
    poller_.join();
  }

  std::string Path(const std::string& name) const { return tree_.root() + "/" + name; }
  // As an editor does it: the file is empty for a moment, then half written.
  void Write(const std::string& name, const std::string& text) const {
    tree_.WriteSecret(name, text);
  }

  std::shared_ptr<grpc::Channel> NewChannel() const {
    return MakeChannel(server_->address(), OwnConnection(), {client_files_, "", "", ""}).value();
  }
  // The serial of the certificate that a new handshake shows.
  std::string ServedSerial() const {
    const TlsContextPointer context(SSL_CTX_new(TLS_client_method()));
    const BioPointer connection(BIO_new_ssl_connect(context.get()));
    BIO_set_conn_hostname(connection.get(), server_->address().c_str());
    SSL* tls = nullptr;
    BIO_get_ssl(connection.get(), &tls);
    constexpr unsigned char kHttp2[] = {2, 'h', '2'};
    SSL_set_alpn_protos(tls, kHttp2, sizeof(kHttp2));
    if (BIO_do_connect(connection.get()) != 1) return "";
    const CertificatePointer certificate(SSL_get1_peer_certificate(tls));
    return certificate == nullptr ? "" : ParseCertificate(WritePem(certificate.get()))->serial;
  }
  // Whether new handshakes show this certificate soon.
  bool IsServed(const std::string& pem) const {
    return Eventually(
        [this, serial = ParseCertificate(pem)->serial] { return ServedSerial() == serial; });
  }

  const int64_t now_ = std::time(nullptr);
  const Validity today_ = {now_ - kDay, now_ + kDay};
  const TestAuthority authority_{today_};
  const KeyAndCertificate server_pair_ = authority_.Server(today_);
  const KeyAndCertificate client_pair_ =
      authority_.Client("spiffe://rollcall/rollcall/agent/host/node-1", today_);
  const TemporaryTree tree_;
  TlsFiles files_{{Path("tls.crt"), Path("tls.key"), Path("ca.crt"), ""}, CertificateUse::kServer};
  const std::shared_ptr<TlsFiles> client_files_ = std::make_shared<TlsFiles>(
      TlsPaths{Path("client.crt"), Path("client.key"), Path("client-ca.crt"), ""},
      CertificateUse::kClient);
  std::optional<EchoServer> server_;
  std::atomic<bool> stop_{false};
  std::thread poller_;
};

TEST_F(RotationTest, NoStreamIsLostAndEveryHandshakeWorksWhileFilesAreReplaced) {
  std::vector<std::unique_ptr<Agent>> agents;
  for (int i = 0; i < kStreams; ++i) agents.push_back(std::make_unique<Agent>(NewChannel()));
  for (const auto& agent : agents) ASSERT_TRUE(agent->Exchange());

  std::atomic<bool> done{false};
  std::atomic<int> connections{0};
  std::atomic<int> failures{0};
  std::thread newcomer([&] {
    while (!done) {
      failures += CallOnce(NewChannel()).ok() ? 0 : 1;
      ++connections;
    }
  });

  const KeyAndCertificate second = authority_.Server(today_);
  const KeyAndCertificate third = authority_.Server(today_);
  const KeyAndCertificate expired = authority_.Server({now_ - 2 * kDay, now_ - kDay});
  const TestAuthority other(today_, "Another");
  struct Step {
    const char* file;
    std::string text;
  };
  // What people and tools write, each seen by some polls of both watchers.
  const std::vector<Step> steps = {
      {"tls.crt", "garbage"},
      {"tls.crt", second.certificate_pem},  // and the old key
      {"tls.key", second.key_pem.substr(0, 90)},
      {"tls.key", second.key_pem},
      {"ca.crt", ""},
      {"ca.crt", authority_.pem().substr(0, 200)},
      {"ca.crt", authority_.pem() + other.pem()},
      {"tls.key", third.key_pem},
      {"tls.crt", third.certificate_pem.substr(0, 300)},
      {"tls.crt", expired.certificate_pem},
      {"tls.crt", third.certificate_pem},
  };
  for (const Step& step : steps) {
    Write(step.file, step.text);
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    for (const auto& agent : agents) EXPECT_TRUE(agent->Exchange());
  }
  EXPECT_TRUE(IsServed(third.certificate_pem));
  EXPECT_TRUE(Eventually([&connections] { return connections > 50; }));
  for (const char* file : {"tls.crt", "tls.key", "ca.crt"}) tree_.Remove(file);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_EQ(ServedSerial(), ParseCertificate(third.certificate_pem)->serial);

  done = true;
  newcomer.join();
  EXPECT_EQ(failures, 0) << "of " << connections;
  for (const auto& agent : agents) EXPECT_TRUE(agent->Exchange() && agent->End());
}

// Each swap meets gRPC's watcher at another moment; a mixed pair would fail handshakes for a
// second.
TEST_F(RotationTest, ManyRenewalsInARowNeverMixTwoPairs) {
  KeyAndCertificate last;
  int failures = 0;
  for (int i = 0; i < 40; ++i) {
    last = authority_.Server(today_);
    Write("tls.key", last.key_pem);
    Write("tls.crt", last.certificate_pem);
    std::this_thread::sleep_for(std::chrono::milliseconds(60 + i));
    failures += CallOnce(NewChannel()).ok() ? 0 : 1;
  }
  EXPECT_EQ(failures, 0);
  EXPECT_TRUE(IsServed(last.certificate_pem));
}

TEST_F(RotationTest, AnAuthorityThatIsTakenOutIsRefusedSoon) {
  ASSERT_TRUE(CallOnce(NewChannel()).ok());
  Agent agent(NewChannel());
  ASSERT_TRUE(agent.Exchange());
  Write("ca.crt", TestAuthority(today_, "Another").pem());
  EXPECT_TRUE(Eventually([this] { return !CallOnce(NewChannel()).ok(); }));
  EXPECT_TRUE(agent.Exchange()) << "an open connection goes on";
}

// The agent lives for months, too.
TEST_F(RotationTest, AClientTakesItsNewCertificateWhenItConnectsAgain) {
  const std::shared_ptr<grpc::Channel> channel = NewChannel();
  ASSERT_TRUE(CallOnce(channel).ok());
  const KeyAndCertificate next =
      authority_.Client("spiffe://rollcall/rollcall/agent/host/node-2", today_);
  Write("client.crt", next.certificate_pem);
  EXPECT_FALSE(client_files_->Poll(now_).ok());
  Write("client.key", next.key_pem);
  EXPECT_EQ(client_files_->Poll(now_), absl::OkStatus());
  std::string uri;
  EXPECT_TRUE(Eventually([&] {
    EXPECT_TRUE(CallOnce(NewChannel()).ok());
    uri = ParseCertificate(server_->last().certificate_pem)->uris.front();
    return uri == "spiffe://rollcall/rollcall/agent/host/node-2";
  })) << uri;
}

}  // namespace
}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
// The bytes of one connection, with both ends in this thread.
#include "net/http_transport.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test_authority.h"

namespace rollcall {
namespace {

class HttpTransportTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends_), 0);
    const TestPair pair = authority_.Issue("DNS:localhost");
    TlsSettings settings;
    settings.certificate_pem = pair.certificate_pem;
    settings.key_pem = pair.key_pem;
    const auto made = TlsContext::Make(settings);
    ASSERT_TRUE(made.ok());
    transport_ = MakeTlsTransport(ends_[0], *made);
    client_ = SSL_new(context_);
    SSL_set_fd(client_, ends_[1]);
    SSL_set_connect_state(client_);
  }
  void TearDown() override {
    SSL_free(client_);
    SSL_CTX_free(context_);
    transport_.reset();
    close(ends_[0]);
    if (ends_[1] >= 0) close(ends_[1]);
  }
  void Shake() {
    char byte;
    for (int i = 0; i < 10; ++i) {
      SSL_do_handshake(client_);
      EXPECT_EQ(transport_->Read(&byte, 1).state, IoState::kWantRead);
    }
    ASSERT_EQ(SSL_is_init_finished(client_), 1);
  }

  const OpensslAuthority authority_;
  SSL_CTX* const context_ = SSL_CTX_new(TLS_client_method());
  SSL* client_ = nullptr;
  int ends_[2] = {-1, -1};
  std::unique_ptr<HttpTransport> transport_;
};

// A signal would end the program.
TEST_F(HttpTransportTest, WritingToAClientThatHasLeftRaisesNoSignal) {
  Shake();
  close(ends_[1]);
  ends_[1] = -1;
  EXPECT_EQ(transport_->Write("x", 1).state, IoState::kEnded);
  transport_->SayEnd();
}

TEST_F(HttpTransportTest, AFullSocketWantsToWriteAndLosesNothing) {
  Shake();
  const std::string all(8 << 20, 'y');
  size_t sent = 0, waits = 0;
  std::string heard;
  char bytes[16384];
  while (heard.size() < all.size()) {
    const IoResult result =
        sent < all.size() ? transport_->Write(all.data() + sent, all.size() - sent) : IoResult();
    if (result.state == IoState::kDone) sent += result.count;
    if (result.state == IoState::kDone) continue;
    ASSERT_TRUE(sent == all.size() || result.state == IoState::kWantWrite);
    ++waits;
    const int count = SSL_read(client_, bytes, sizeof(bytes));
    ASSERT_GT(count, 0);
    heard.append(bytes, static_cast<size_t>(count));
  }
  EXPECT_EQ(heard, all);
  EXPECT_GT(waits, 1u);
}

TEST_F(HttpTransportTest, ReadsAWholeRecordAtOnce) {
  Shake();
  const std::string record(16384, 'z');
  ASSERT_EQ(SSL_write(client_, record.data(), 16384), 16384);
  char bytes[16384];
  size_t count = 0;
  while (count < record.size()) {
    const IoResult result = transport_->Read(bytes, sizeof(bytes));
    ASSERT_EQ(result.state, IoState::kDone);
    count += result.count;
  }
  EXPECT_FALSE(transport_->HasPending());
}

TEST_F(HttpTransportTest, KnowsWhoSpeaksPlainHttp) {
  ASSERT_EQ(send(ends_[1], "GET /", 5, 0), 5);
  char bytes[16];
  EXPECT_EQ(transport_->Read(bytes, sizeof(bytes)).state, IoState::kNotTls);
  const auto plain = MakePlainTransport(ends_[0]);
  EXPECT_EQ(plain->Read(bytes, sizeof(bytes)).count, 5u);  // nothing was lost
}

TEST_F(HttpTransportTest, KnowsWhoSpeaksTlsToAPlainPort) {
  SSL_do_handshake(client_);
  char bytes[16];
  EXPECT_EQ(MakePlainTransport(ends_[0])->Read(bytes, sizeof(bytes)).state, IoState::kTls);
}

}  // namespace
}  // namespace rollcall

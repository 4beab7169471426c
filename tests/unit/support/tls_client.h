// SPDX-License-Identifier: Apache-2.0
// A client of TLS on loopback that a test drives step by step.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "eventually.h"
#include "test_authority.h"

namespace rollcall {

// Takes SIGPIPE from this thread, and from no thread of a server in the same process.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutSigpipe() {
    const timespec now = {};
    while (sigtimedwait(&pipe_, nullptr, &now) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  sigset_t pipe_, before_;
};

class TlsClient {
 public:
  // `pair` is the client's own certificate; empty if there is none. `largest` is the highest
  // version of TLS; 0 means any.
  explicit TlsClient(const sockaddr_in& address, const TestPair& pair = {}, int largest = 0)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
        context_(SSL_CTX_new(TLS_client_method())) {
    const int yes = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return;
    SSL_CTX_set_max_proto_version(context_, largest);
    SSL_CTX_set_min_proto_version(context_, TLS1_VERSION);
    SSL_CTX_set_security_level(context_, 0);
    if (!pair.certificate_pem.empty()) Use(pair);
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, fd_);
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    close(fd_);
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  bool Handshake() {
    const WithoutSigpipe guard;
    return SSL_connect(ssl_) == 1;
  }
  bool Send(const std::string& text) {
    const WithoutSigpipe guard;
    return SSL_write(ssl_, text.data(), static_cast<int>(text.size())) ==
           static_cast<int>(text.size());
  }
  // Reads until the connection ends, `until` has arrived, or nothing arrives for a while.
  std::string Receive(const std::string& until = "") {
    std::string heard;
    char bytes[65536];
    pollfd ready = {fd_, POLLIN, 0};
    while (until.empty() || heard.find(until) == std::string::npos) {
      if (SSL_pending(ssl_) == 0 && poll(&ready, 1, int{kPatience.count()}) <= 0) break;
      const int count = SSL_read(ssl_, bytes, sizeof(bytes));
      if (count <= 0) break;
      heard.append(bytes, static_cast<size_t>(count));
    }
    return heard;
  }
  // Whether the last Receive() ended with the server's farewell, not with a broken connection.
  bool has_farewell() const { return (SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) != 0; }
  std::string certificate_of_server() const {
    X509* certificate = SSL_get0_peer_certificate(ssl_);
    BIO* bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, certificate);
    char* text = nullptr;
    const long size = BIO_get_mem_data(bio, &text);
    std::string pem(text, static_cast<size_t>(size));
    BIO_free(bio);
    return pem;
  }
  SSL* ssl() { return ssl_; }
  int fd() const { return fd_; }

 private:
  void Use(const TestPair& pair) {
    BIO* certificate = BIO_new_mem_buf(pair.certificate_pem.data(), -1);
    BIO* key = BIO_new_mem_buf(pair.key_pem.data(), -1);
    X509* own = PEM_read_bio_X509(certificate, nullptr, nullptr, nullptr);
    EVP_PKEY* secret = PEM_read_bio_PrivateKey(key, nullptr, nullptr, nullptr);
    SSL_CTX_use_certificate(context_, own);
    SSL_CTX_use_PrivateKey(context_, secret);
    X509_free(own);
    EVP_PKEY_free(secret);
    BIO_free(certificate);
    BIO_free(key);
  }

  const int fd_;
  SSL_CTX* const context_;
  SSL* ssl_ = nullptr;
};

}  // namespace rollcall

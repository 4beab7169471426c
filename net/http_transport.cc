// SPDX-License-Identifier: Apache-2.0
#include "net/http_transport.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>

namespace rollcall {
namespace {

constexpr unsigned char kTlsHandshake = 22;  // type of the first record of TLS
// One record of TLS holds so much.
constexpr size_t kMostBytesAtOnce = 16 << 10;

// The state after a system call that failed.
IoState Failed(IoState otherwise) {
  return errno == EAGAIN || errno == EINTR ? otherwise : IoState::kEnded;
}

class PlainTransport : public HttpTransport {
 public:
  explicit PlainTransport(int fd) : fd_(fd) {}

  IoResult Read(char* bytes, size_t size) override {
    const ssize_t count = recv(fd_, bytes, size, 0);
    if (count < 0) return {Failed(IoState::kWantRead)};
    if (count == 0) return {IoState::kEnded};
    const bool is_first = !had_bytes_;
    had_bytes_ = true;
    // No method of HTTP begins with this byte.
    if (is_first && static_cast<unsigned char>(bytes[0]) == kTlsHandshake) return {IoState::kTls};
    return {IoState::kDone, static_cast<size_t>(count)};
  }
  IoResult Write(const char* bytes, size_t size) override {
    const ssize_t count = send(fd_, bytes, size, MSG_NOSIGNAL);
    if (count <= 0) return {Failed(IoState::kWantWrite)};
    return {IoState::kDone, static_cast<size_t>(count)};
  }
  bool HasPending() const override { return false; }
  void SayEnd() override {}
  bool is_encrypted() const override { return false; }
  std::string certificate_pem() const override { return ""; }

 private:
  const int fd_;
  bool had_bytes_ = false;
};

// OpenSSL's own socket BIO raises SIGPIPE.
int SocketOf(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

int BioRead(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t count = recv(SocketOf(bio), bytes, static_cast<size_t>(size), 0);
  if (count < 0 && Failed(IoState::kWantRead) == IoState::kWantRead) BIO_set_retry_read(bio);
  return static_cast<int>(count);
}

int BioWrite(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t count = send(SocketOf(bio), bytes, static_cast<size_t>(size), MSG_NOSIGNAL);
  if (count < 0 && Failed(IoState::kWantWrite) == IoState::kWantWrite) BIO_set_retry_write(bio);
  return static_cast<int>(count);
}

long BioControl(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* SocketMethod() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "rollcall socket");
    BIO_meth_set_read(made, BioRead);
    BIO_meth_set_write(made, BioWrite);
    BIO_meth_set_ctrl(made, BioControl);
    return made;
  }();
  return method;
}

class TlsTransport : public HttpTransport {
 public:
  TlsTransport(int fd, std::shared_ptr<const TlsContext> context, SSL* ssl)
      : fd_(fd), context_(std::move(context)), ssl_(ssl) {}
  ~TlsTransport() override { SSL_free(ssl_); }

  IoResult Read(char* bytes, size_t size) override {
    if (!has_tls_) {
      const IoState first = LookAtFirstByte();
      if (first != IoState::kDone) return {first};
      has_tls_ = true;
    }
    ERR_clear_error();
    // Not SSL_read(): that one is for gRPC's connections (guarded_reads.h).
    size_t read = 0;
    const int done = SSL_read_ex(ssl_, bytes, std::min(size, kMostBytesAtOnce), &read);
    const int count = done == 1 ? static_cast<int>(read) : 0;
    if (!is_admitted_ && SSL_is_init_finished(ssl_) != 0) {
      is_admitted_ = context_->Admits(SSL_get0_peer_certificate(ssl_));
      if (!is_admitted_) return {IoState::kEnded};
    }
    return Result(count);
  }
  IoResult Write(const char* bytes, size_t size) override {
    ERR_clear_error();
    return Result(SSL_write(ssl_, bytes, static_cast<int>(std::min(size, kMostBytesAtOnce))));
  }
  bool HasPending() const override { return SSL_pending(ssl_) > 0; }
  void SayEnd() override {
    // OpenSSL forbids the call after a failure, and during the handshake.
    if (has_failed_ || !has_tls_ || SSL_is_init_finished(ssl_) == 0) return;
    ERR_clear_error();
    SSL_shutdown(ssl_);
  }
  bool is_encrypted() const override { return true; }
  std::string certificate_pem() const override {
    X509* certificate = SSL_get0_peer_certificate(ssl_);
    if (certificate == nullptr || SSL_get_verify_result(ssl_) != X509_V_OK) return "";
    BIO* bio = BIO_new(BIO_s_mem());
    std::string pem;
    char* text = nullptr;
    if (bio != nullptr && PEM_write_bio_X509(bio, certificate) == 1) {
      const long size = BIO_get_mem_data(bio, &text);
      pem.assign(text, static_cast<size_t>(size));
    }
    BIO_free(bio);
    return pem;
  }

 private:
  // Methods of HTTP are capital letters; no record of TLS begins with one.
  IoState LookAtFirstByte() {
    char byte = 0;
    const ssize_t count = recv(fd_, &byte, 1, MSG_PEEK);
    if (count < 0) return Failed(IoState::kWantRead);
    if (count == 0) return IoState::kEnded;
    return byte >= 'A' && byte <= 'Z' ? IoState::kNotTls : IoState::kDone;
  }
  IoResult Result(int count) {
    if (count > 0) return {IoState::kDone, static_cast<size_t>(count)};
    switch (SSL_get_error(ssl_, count)) {
      case SSL_ERROR_WANT_READ:
        return {IoState::kWantRead};
      case SSL_ERROR_WANT_WRITE:
        return {IoState::kWantWrite};
      case SSL_ERROR_ZERO_RETURN:
        return {IoState::kEnded};
      default:
        has_failed_ = true;
        return {IoState::kEnded};
    }
  }

  const int fd_;
  const std::shared_ptr<const TlsContext> context_;
  SSL* const ssl_;
  bool has_tls_ = false;  // the first byte is one of TLS
  bool is_admitted_ = false;
  bool has_failed_ = false;
};

}  // namespace

std::unique_ptr<HttpTransport> MakePlainTransport(int fd) {
  return std::make_unique<PlainTransport>(fd);
}

std::unique_ptr<HttpTransport> MakeTlsTransport(int fd, std::shared_ptr<const TlsContext> context) {
  SSL* ssl = context->NewConnection();
  BIO* bio = ssl == nullptr ? nullptr : BIO_new(SocketMethod());
  if (bio == nullptr) {
    SSL_free(ssl);
    return nullptr;
  }
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  return std::make_unique<TlsTransport>(fd, std::move(context), ssl);
}

}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
#include "security/connection_probe.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <ctime>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/server_address.h"
#include "base/unique_fd.h"
#include "security/certificates/certificate.h"
#include "security/certificates/openssl_types.h"
#include "security/certificates/pem.h"

namespace rollcall {
namespace {

constexpr int kPatienceMs = 2'000;  // for each step

// OpenSSL writes to sockets without MSG_NOSIGNAL: a daemon that hangs up would end this process.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    constexpr timespec kAtOnce = {0, 0};
    if (sigismember(&before_, SIGPIPE) == 1) return;  // somebody else waits for it
    while (sigtimedwait(&pipe_, nullptr, &kAtOnce) > 0) continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
};

// What a handshake of our own met.
struct Handshake {
  bool speaks_tls = false;
  bool speaks_something_else = false;
  long verified = X509_V_OK;    // X509_V_ERR_…: why we do not believe the daemon
  int alert = 0;                // SSL_AD_…: why the daemon refuses us
  bool hung_up = false;         // the daemon, right after the handshake and without an alert
  std::string certificate_pem;  // of the daemon
};

bool FinishConnect(int fd) {
  pollfd wait = {fd, POLLOUT, 0};
  int error = 0;
  socklen_t size = sizeof(error);
  return poll(&wait, 1, kPatienceMs) == 1 &&
         getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

// A connected socket that blocks at most kPatienceMs; invalid if there is none.
UniqueFd ConnectOne(const addrinfo& address) {
  UniqueFd connection(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int fd = connection.get();
  if (fd < 0) return connection;
  const bool started =
      connect(fd, address.ai_addr, address.ai_addrlen) == 0 || errno == EINPROGRESS;
  if (!started || !FinishConnect(fd)) return UniqueFd();
  const timeval patience = {kPatienceMs / 1000, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return connection;
}

UniqueFd Connect(const ServerAddress& server) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(server.host.c_str(), server.port.c_str(), &hints, &found) != 0) {
    return UniqueFd();
  }
  const absl::Cleanup free_found = [found] { freeaddrinfo(found); };
  int tries = 2;  // IPv6 and IPv4
  for (const addrinfo* one = found; one != nullptr && tries > 0; one = one->ai_next, --tries) {
    if (UniqueFd fd = ConnectOne(*one); fd.valid()) return fd;
  }
  return UniqueFd();
}

TlsContextPointer MakeContext(const TlsContents* tls) {
  TlsContextPointer context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  if (tls == nullptr) return context;
  const absl::StatusOr<std::vector<CertificatePointer>> authorities = ReadCertificates(tls->ca_pem);
  for (size_t i = 0; authorities.ok() && i < authorities->size(); ++i) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), (*authorities)[i].get());
  }
  const absl::StatusOr<std::vector<CertificatePointer>> chain =
      ReadCertificates(tls->certificate_pem);
  const absl::StatusOr<KeyPointer> key = ReadKey(tls->key_pem);
  if (!chain.ok() || !key.ok()) return context;
  SSL_CTX_use_certificate(context.get(), chain->front().get());
  SSL_CTX_use_PrivateKey(context.get(), key->get());
  for (size_t i = 1; i < chain->size(); ++i)
    SSL_CTX_add1_chain_cert(context.get(), (*chain)[i].get());
  return context;
}

void ExpectName(SSL* connection, const std::string& name) {
  if (IsIpAddress(name)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(connection), name.c_str());
  } else {
    SSL_set1_host(connection, name.c_str());
    SSL_set_tlsext_host_name(connection, name.c_str());
  }
}

// With TLS 1.3 a daemon refuses a client after the client's handshake has ended. gRPC then closes
// the connection without an alert; a daemon that accepts begins to speak HTTP/2.
void ReadErrors(SSL* connection, int result, Handshake* seen) {
  const int kind = SSL_get_error(connection, result);
  seen->hung_up = seen->speaks_tls && result <= 0 && kind != SSL_ERROR_WANT_READ;
  const unsigned long error = ERR_peek_last_error();
  const int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
  if (result <= 0 && reason > SSL_AD_REASON_OFFSET) {
    seen->speaks_tls = true;
    seen->alert = reason - SSL_AD_REASON_OFFSET;
  }
  seen->speaks_something_else |= reason == SSL_R_WRONG_VERSION_NUMBER ||
                                 reason == SSL_R_PACKET_LENGTH_TOO_LONG ||
                                 reason == SSL_R_BAD_RECORD_TYPE || reason == SSL_R_HTTP_REQUEST;
  seen->verified = SSL_get_verify_result(connection);
  ERR_clear_error();
}

Handshake Shake(int fd, const TlsContents* tls, const std::string& name) {
  Handshake seen;
  const TlsContextPointer context = MakeContext(tls);
  const TlsPointer connection(SSL_new(context.get()));
  constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(connection.get(), kHttp2, sizeof(kHttp2));
  SSL_set_fd(connection.get(), fd);
  if (tls != nullptr) ExpectName(connection.get(), name);
  // The result is kept; the handshake goes on, so that the certificate can be shown.
  SSL_set_verify(connection.get(), SSL_VERIFY_NONE, nullptr);
  ERR_clear_error();
  int result = SSL_connect(connection.get());
  char first = 0;
  seen.speaks_tls = result == 1;
  if (result == 1) result = SSL_read(connection.get(), &first, 1);
  ReadErrors(connection.get(), result, &seen);
  const CertificatePointer certificate(SSL_get1_peer_certificate(connection.get()));
  if (certificate != nullptr) {
    seen.speaks_tls = true;
    seen.certificate_pem = WritePem(certificate.get());
  }
  return seen;
}

std::string NamesIn(const std::string& certificate_pem) {
  const absl::StatusOr<CertificateFacts> facts = ParseCertificate(certificate_pem);
  if (!facts.ok()) return "no names";
  std::vector<std::string> names = facts->dns_names;
  names.insert(names.end(), facts->ip_addresses.begin(), facts->ip_addresses.end());
  return names.empty() ? "no names" : absl::StrJoin(names, ", ");
}

std::string WhyNotBelieved(const Handshake& seen, const std::string& name) {
  const absl::StatusOr<CertificateFacts> facts = ParseCertificate(seen.certificate_pem);
  const CertificateFacts daemon = facts.ok() ? *facts : CertificateFacts();
  switch (seen.verified) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return absl::StrCat("the daemon's certificate is not for ", name, ", but for ",
                          NamesIn(seen.certificate_pem),
                          ": use one of these names, or add --tls-server-name=NAME");
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return absl::StrCat(
          "the daemon's certificate, or that of its authority, has expired (the "
          "daemon's on ",
          DateOf(daemon.not_after_s), "): renew it there");
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return absl::StrCat("the daemon's certificate is valid only from ",
                          DateOf(daemon.not_before_s), ": compare the clocks of both hosts");
    case X509_V_ERR_INVALID_PURPOSE:
      return "the certificate of that host is not for a daemon: issue one with `rollcall pki issue "
             "DIR --role=daemon --host=NAME`";
    default:
      return absl::StrCat("no authority in the file of --tls-ca signed the daemon's certificate (",
                          X509_verify_cert_error_string(seen.verified), "; it was issued to ",
                          daemon.subject, "): take --tls-ca from the authority that signed it");
  }
}

std::string WhyRefused(int alert, const TlsContents& tls) {
  const absl::StatusOr<CertificateFacts> own = ParseCertificate(tls.certificate_pem);
  if (!own.ok()) return "the daemon asks for a certificate: add --tls-cert=FILE --tls-key=FILE";
  if (own->not_after_s < std::time(nullptr)) {
    return absl::StrCat("the certificate of --tls-cert expired on ", DateOf(own->not_after_s),
                        ": renew it");
  }
  const std::string reason =
      alert == 0 ? "" : absl::StrCat(" (", SSL_alert_desc_string_long(alert), ")");
  return absl::StrCat("the daemon refuses the certificate of --tls-cert", reason,
                      "; most often its authority is not in the daemon's --tls-client-ca");
}

}  // namespace

std::string ExplainFailedConnection(const std::string& address, const TlsContents* tls,
                                    const std::string& server_name) {
  const ServerAddress server = SplitServerAddress(address);
  if (server.is_unix) return "";
  const NoSigpipe no_sigpipe;
  const UniqueFd fd = Connect(server);
  if (!fd.valid()) return "";
  const std::string name = server_name.empty() ? server.host : server_name;
  const Handshake seen = Shake(fd.get(), tls, name);
  if (tls == nullptr) return seen.speaks_tls ? "this daemon speaks TLS: add --tls-ca=FILE" : "";
  if (seen.verified != X509_V_OK) return WhyNotBelieved(seen, name);
  if (!seen.certificate_pem.empty() && tls->revocations.IsRevoked(seen.certificate_pem)) {
    return "the daemon's certificate is in the list of --tls-crl: its authority has revoked it. "
           "Issue another one with `rollcall pki issue DIR --role=daemon --host=NAME`";
  }
  if (seen.speaks_something_else) return "this daemon does not speak TLS: leave out --tls-ca";
  if (seen.alert == SSL_AD_PROTOCOL_VERSION) return "that port speaks no TLS 1.2 or 1.3";
  return seen.alert != 0 || seen.hung_up ? WhyRefused(seen.alert, *tls) : "";
}

}  // namespace rollcall

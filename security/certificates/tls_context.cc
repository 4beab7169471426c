// SPDX-License-Identifier: Apache-2.0
#include "security/certificates/tls_context.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "security/certificates/certificate.h"
#include "security/certificates/openssl_types.h"
#include "security/certificates/pem.h"

namespace rollcall {
namespace {

absl::Status Wrong(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", TakeOpenSslError()));
}

std::string Text(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

// The SANs that are texts: names, addresses of mail, URIs.
std::vector<std::string> ReadSans(X509* certificate) {
  std::vector<std::string> all;
  const NamesPointer names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    const bool is_text = name->type == GEN_DNS || name->type == GEN_URI || name->type == GEN_EMAIL;
    if (is_text) all.push_back(Text(name->d.ia5));
  }
  return all;
}

absl::Status UsePair(SSL_CTX* context, const std::vector<CertificatePointer>& chain,
                     const std::string& key_pem) {
  const absl::StatusOr<KeyPointer> key = ReadKey(key_pem);
  if (!key.ok()) return key.status();
  if (SSL_CTX_use_certificate(context, chain.front().get()) != 1) {
    return Wrong("the certificate cannot be used");
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1) return Wrong("a wrong chain");
  }
  if (SSL_CTX_use_PrivateKey(context, key->get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return Wrong("key and certificate do not belong together");
  }
  return absl::OkStatus();
}

absl::Status UseClients(SSL_CTX* context, const TlsSettings& settings) {
  if (settings.client_ca_pem.empty()) {
    if (!settings.requires_client_certificate) return absl::OkStatus();
    return absl::InvalidArgumentError("clients need certificates, and no client CA is given");
  }
  const auto all = ReadCertificates(settings.client_ca_pem);
  if (!all.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("the client CA: ", all.status().message()));
  }
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  for (const CertificatePointer& ca : *all) {
    if (X509_STORE_add_cert(store, ca.get()) != 1 ||
        SSL_CTX_add_client_CA(context, ca.get()) != 1) {
      return Wrong("the client CA cannot be used");
    }
  }
  const int required = settings.requires_client_certificate ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | required, nullptr);
  return absl::OkStatus();
}

// No client may make the server compute again and again on one connection, or resume a session that
// a certificate began which is revoked now.
void Harden(SSL_CTX* context, bool needs_tls13) {
  SSL_CTX_set_min_proto_version(context, needs_tls13 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  // Without it, SSL_read() returns after each record, so that no client keeps the thread.
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TlsContext>> TlsContext::Make(const TlsSettings& settings) {
  std::shared_ptr<TlsContext> made(new TlsContext);
  made->context_ = SSL_CTX_new(TLS_server_method());
  if (made->context_ == nullptr) return Wrong("OpenSSL has no memory");
  Harden(made->context_, settings.needs_tls13);
  const auto chain = ReadCertificates(settings.certificate_pem);
  if (!chain.ok()) return chain.status();
  absl::Status status = UsePair(made->context_, *chain, settings.key_pem);
  if (status.ok()) status = UseClients(made->context_, settings);
  if (!status.ok()) return status;
  const absl::StatusOr<CertificateFacts> facts = ParseCertificate(settings.certificate_pem);
  if (!facts.ok()) return facts.status();
  made->names_ = facts->dns_names;
  made->client_sans_ = settings.client_sans;
  made->expires_s_ = facts->not_after_s;
  return std::shared_ptr<const TlsContext>(std::move(made));
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

SSL* TlsContext::NewConnection() const {
  SSL* connection = SSL_new(context_);
  if (connection != nullptr) SSL_set_accept_state(connection);
  return connection;
}

bool TlsContext::Admits(X509* client) const {
  if (client_sans_.empty() || client == nullptr) return true;
  const std::vector<std::string> sans = ReadSans(client);
  return std::any_of(sans.begin(), sans.end(), [this](const std::string& san) {
    return std::find(client_sans_.begin(), client_sans_.end(), san) != client_sans_.end();
  });
}

}  // namespace rollcall

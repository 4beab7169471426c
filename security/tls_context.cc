// SPDX-License-Identifier: Apache-2.0
#include "security/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <time.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

template <typename T, void (*Free)(T*)>
struct Freer {
  void operator()(T* thing) const { Free(thing); }
};
void FreeBio(BIO* bio) { BIO_free(bio); }
using Bio = std::unique_ptr<BIO, Freer<BIO, FreeBio>>;
using Certificate = std::unique_ptr<X509, Freer<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY, EVP_PKEY_free>>;
using Crl = std::unique_ptr<X509_CRL, Freer<X509_CRL, X509_CRL_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES, GENERAL_NAMES_free>>;

// Without it, OpenSSL asks for a password on the terminal.
int NoPassword(char*, int, int, void*) { return 0; }

Bio ReadFrom(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

absl::Status Wrong(const char* what) {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return absl::InvalidArgumentError(
      absl::StrCat(what, reason == nullptr ? "" : " (OpenSSL: ", reason == nullptr ? "" : reason,
                   reason == nullptr ? "" : ")"));
}

std::vector<Certificate> ReadCertificates(const std::string& text) {
  std::vector<Certificate> all;
  const Bio bio = ReadFrom(text);
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr)) {
    all.emplace_back(next);
  }
  ERR_clear_error();  // says that the text has ended
  return all;
}

std::string Text(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

// The SANs that are texts: names, addresses of mail, URIs. `only_dns` leaves out the last two.
std::vector<std::string> ReadSans(X509* certificate, bool only_dns) {
  std::vector<std::string> all;
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    const bool is_text = name->type == GEN_DNS || name->type == GEN_URI || name->type == GEN_EMAIL;
    if (only_dns ? name->type == GEN_DNS : is_text) all.push_back(Text(name->d.ia5));
  }
  return all;
}

int64_t ExpiresAt(const X509* certificate) {
  tm time = {};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time) != 1) return 0;
  return timegm(&time);
}

absl::Status UsePair(SSL_CTX* context, const std::vector<Certificate>& chain,
                     const std::string& key_pem) {
  if (chain.empty()) return Wrong("no certificate in PEM");
  const Bio bio = ReadFrom(key_pem);
  const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) return Wrong("no private key in PEM without a password");
  if (SSL_CTX_use_certificate(context, chain.front().get()) != 1) {
    return Wrong("the certificate cannot be used");
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1) return Wrong("a wrong chain");
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return Wrong("key and certificate do not belong together");
  }
  return absl::OkStatus();
}

absl::Status UseRevocation(X509_STORE* store, const std::string& crl_pem) {
  if (crl_pem.empty()) return absl::OkStatus();
  const Bio bio = ReadFrom(crl_pem);
  int count = 0;
  while (X509_CRL* next = PEM_read_bio_X509_CRL(bio.get(), nullptr, NoPassword, nullptr)) {
    const Crl crl(next);
    if (X509_STORE_add_crl(store, crl.get()) != 1) return Wrong("the revocation list is wrong");
    ++count;
  }
  ERR_clear_error();
  if (count == 0) return Wrong("no revocation list in PEM");
  X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
  return absl::OkStatus();
}

absl::Status UseClients(SSL_CTX* context, const TlsSettings& settings) {
  if (settings.client_ca_pem.empty()) {
    if (!settings.requires_client_certificate) return absl::OkStatus();
    return absl::InvalidArgumentError("clients need certificates, and no client CA is given");
  }
  const std::vector<Certificate> all = ReadCertificates(settings.client_ca_pem);
  if (all.empty()) return Wrong("no client CA in PEM");
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  for (const Certificate& ca : all) {
    if (X509_STORE_add_cert(store, ca.get()) != 1 ||
        SSL_CTX_add_client_CA(context, ca.get()) != 1) {
      return Wrong("the client CA cannot be used");
    }
  }
  const int required = settings.requires_client_certificate ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | required, nullptr);
  return UseRevocation(store, settings.crl_pem);
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
  const std::vector<Certificate> chain = ReadCertificates(settings.certificate_pem);
  absl::Status status = UsePair(made->context_, chain, settings.key_pem);
  if (status.ok()) status = UseClients(made->context_, settings);
  if (!status.ok()) return status;
  made->names_ = ReadSans(chain.front().get(), true);
  made->client_sans_ = settings.client_sans;
  made->expires_s_ = ExpiresAt(chain.front().get());
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
  const std::vector<std::string> sans = ReadSans(client, false);
  return std::any_of(sans.begin(), sans.end(), [this](const std::string& san) {
    return std::find(client_sans_.begin(), client_sans_.end(), san) != client_sans_.end();
  });
}

}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
#include "security/certificates/certificate.h"

#include <arpa/inet.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "security/certificates/openssl_types.h"
#include "security/certificates/pem.h"

namespace rollcall {
namespace {

int64_t UnixTime(const ASN1_TIME* time) {
  std::tm parts = {};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? timegm(&parts) : 0;
}

std::string SubjectOf(const X509* certificate) {
  const BioPointer text(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(text.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
  return TextOf(text.get());
}

std::string SerialOf(const X509* certificate) {
  const BioPointer text(BIO_new(BIO_s_mem()));
  i2a_ASN1_INTEGER(text.get(), X509_get0_serialNumber(certificate));
  return TextOf(text.get());
}

std::string FingerprintOf(const X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest, &size) != 1) return "";
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<char*>(digest), size));
}

void AddName(const ASN1_STRING* name, std::vector<std::string>* names) {
  const auto* bytes = reinterpret_cast<const char*>(ASN1_STRING_get0_data(name));
  const std::string text(bytes, static_cast<size_t>(ASN1_STRING_length(name)));
  const bool printable = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (printable && !text.empty()) names->push_back(text);
}

void AddAddress(const ASN1_STRING* address, std::vector<std::string>* addresses) {
  const int family = ASN1_STRING_length(address) == 4    ? AF_INET
                     : ASN1_STRING_length(address) == 16 ? AF_INET6
                                                         : AF_UNSPEC;
  char text[INET6_ADDRSTRLEN];
  if (family == AF_UNSPEC) return;
  if (inet_ntop(family, ASN1_STRING_get0_data(address), text, sizeof(text)) != nullptr) {
    addresses->emplace_back(text);
  }
}

void AddAlternativeNames(const X509* certificate, CertificateFacts* facts) {
  const NamesPointer names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    int type = 0;
    const void* value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &type);
    const auto* text = static_cast<const ASN1_STRING*>(value);
    if (type == GEN_URI) AddName(text, &facts->uris);
    if (type == GEN_DNS) AddName(text, &facts->dns_names);
    if (type == GEN_IPADD) AddAddress(text, &facts->ip_addresses);
  }
}

CertificateFacts FactsOf(X509* certificate) {
  CertificateFacts facts;
  facts.not_before_s = UnixTime(X509_get0_notBefore(certificate));
  facts.not_after_s = UnixTime(X509_get0_notAfter(certificate));
  AddAlternativeNames(certificate, &facts);
  facts.subject = SubjectOf(certificate);
  facts.serial = SerialOf(certificate);
  facts.fingerprint = FingerprintOf(certificate);
  facts.is_authority = X509_check_ca(certificate) > 0;
  ERR_clear_error();
  return facts;
}

absl::Status CheckValidity(const CertificateFacts& facts, int64_t now_s) {
  if (now_s < facts.not_before_s) {
    return absl::FailedPreconditionError(
        absl::StrCat("the certificate is valid only from ", DateOf(facts.not_before_s),
                     "; compare the clocks of this host and of the one that made it"));
  }
  if (now_s > facts.not_after_s) {
    return absl::FailedPreconditionError(
        absl::StrCat("the certificate expired on ", DateOf(facts.not_after_s), "; renew it"));
  }
  return absl::OkStatus();
}

// Lets OpenSSL judge the pair as a TLS connection would: this includes keys that it calls too
// short.
absl::Status CheckFit(const std::vector<CertificatePointer>& chain, EVP_PKEY* key) {
  const TlsContextPointer context(SSL_CTX_new(TLS_method()));
  if (SSL_CTX_use_certificate(context.get(), chain.front().get()) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("TLS refuses the certificate: ", TakeOpenSslError()));
  }
  if (X509_check_private_key(chain.front().get(), key) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), key) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("the key does not belong to the certificate (",
                                                   TakeOpenSslError(), "); a renewal writes both"));
  }
  return absl::OkStatus();
}

absl::Status CheckUse(X509* certificate, CertificateUse use) {
  const int purpose =
      use == CertificateUse::kServer ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT;
  if (X509_check_purpose(certificate, purpose, 0) == 1) return absl::OkStatus();
  ERR_clear_error();
  return absl::InvalidArgumentError(
      use == CertificateUse::kServer
          ? "the certificate is not for a server (its extended key usage lacks serverAuth); issue "
            "one with `rollcall pki issue DIR --role=daemon --host=NAME`"
          : "the certificate is not for a client (its extended key usage lacks clientAuth)");
}

// Does not free the certificates in it.
void FreeListOnly(STACK_OF(X509) * list) { sk_X509_free(list); }

absl::Status CheckChain(const std::vector<CertificatePointer>& chain, std::string_view ca_pem,
                        CertificateUse use, int64_t now_s, unsigned long flags = 0) {
  const absl::StatusOr<std::vector<CertificatePointer>> authorities = ReadCertificates(ca_pem);
  if (!authorities.ok()) return authorities.status();
  const StorePointer store(X509_STORE_new());
  for (const CertificatePointer& one : *authorities) X509_STORE_add_cert(store.get(), one.get());
  const OpenSslPointer<STACK_OF(X509), &FreeListOnly> others(sk_X509_new_null());
  for (const CertificatePointer& one : chain) sk_X509_push(others.get(), one.get());

  const StoreContextPointer context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), chain.front().get(), others.get());
  X509_STORE_CTX_set_default(context.get(),
                             use == CertificateUse::kServer ? "ssl_server" : "ssl_client");
  X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(context.get()), now_s);
  X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(context.get()), flags);
  const int verified = X509_verify_cert(context.get());
  const int error = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  if (verified == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the authority did not sign the certificate, or a part of the chain is missing: ",
      X509_verify_cert_error_string(error)));
}

}  // namespace

std::string DateOf(int64_t unix_s) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromUnixSeconds(unix_s),
                          absl::UTCTimeZone());
}

absl::StatusOr<CertificateFacts> ParseCertificate(std::string_view pem) {
  const absl::StatusOr<std::vector<CertificatePointer>> chain = ReadCertificates(pem);
  if (!chain.ok()) return chain.status();
  return FactsOf(chain->front().get());
}

absl::StatusOr<std::vector<CertificateFacts>> ParseCertificates(std::string_view pem) {
  const absl::StatusOr<std::vector<CertificatePointer>> chain = ReadCertificates(pem);
  if (!chain.ok()) return chain.status();
  std::vector<CertificateFacts> all;
  for (const CertificatePointer& one : *chain) all.push_back(FactsOf(one.get()));
  return all;
}

absl::Status CheckPair(std::string_view certificate_pem, std::string_view key_pem,
                       std::string_view ca_pem, CertificateUse use, int64_t now_s) {
  const absl::StatusOr<std::vector<CertificatePointer>> chain = ReadCertificates(certificate_pem);
  if (!chain.ok()) return chain.status();
  const absl::StatusOr<KeyPointer> key = ReadKey(key_pem);
  if (!key.ok()) return key.status();
  absl::Status status = CheckFit(*chain, key->get());
  if (status.ok()) status = CheckUse(chain->front().get(), use);
  if (status.ok()) status = CheckValidity(FactsOf(chain->front().get()), now_s);
  if (status.ok() && !ca_pem.empty()) status = CheckChain(*chain, ca_pem, use, now_s);
  return status;
}

absl::Status CheckClientChain(std::string_view chain_pem, std::string_view ca_pem, int64_t now_s) {
  const absl::StatusOr<std::vector<CertificatePointer>> chain = ReadCertificates(chain_pem);
  if (!chain.ok()) return chain.status();
  return CheckChain(*chain, ca_pem, CertificateUse::kClient, now_s, X509_V_FLAG_PARTIAL_CHAIN);
}

absl::Status CheckAuthorities(std::string_view ca_pem, int64_t now_s) {
  const absl::StatusOr<std::vector<CertificateFacts>> all = ParseCertificates(ca_pem);
  if (!all.ok()) return all.status();
  absl::Status last = absl::InvalidArgumentError(
      "no certificate in it belongs to an authority (basicConstraints lacks CA:TRUE)");
  for (const CertificateFacts& facts : *all) {
    if (!facts.is_authority) continue;
    last = CheckValidity(facts, now_s);
    if (last.ok()) return last;
  }
  return last;
}

}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
#include "security/certificates/certificate_authority.h"

#include <openssl/bn.h>
#include <openssl/rand.h>

#include <ctime>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "security/certificates/openssl_types.h"
#include "security/certificates/pem.h"

namespace rollcall {
namespace {

using IntegerPointer = OpenSslPointer<ASN1_INTEGER, &ASN1_INTEGER_free>;

constexpr int kSerialBits = 128;
constexpr long kVersion3 = 2;
constexpr long kCrlVersion2 = 1;

absl::Status Failed(const char* what) {
  return absl::InternalError(absl::StrCat("cannot make ", what, ": ", TakeOpenSslError()));
}

// A positive number of 128 random bits, as RFC 5280 asks for.
IntegerPointer RandomSerial() {
  const BigNumber number(BN_new());
  if (BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) != 1 ||
      BN_is_zero(number.get())) {
    return nullptr;
  }
  return IntegerPointer(BN_to_ASN1_INTEGER(number.get(), nullptr));
}

IntegerPointer IntegerOf(const std::string& hexadecimal) {
  BIGNUM* number = nullptr;
  if (BN_hex2bn(&number, hexadecimal.c_str()) == 0) return nullptr;
  const BigNumber owner(number);
  return IntegerPointer(BN_to_ASN1_INTEGER(number, nullptr));
}

bool SetTimes(X509* certificate, const Validity& validity) {
  return ASN1_TIME_set(X509_getm_notBefore(certificate), validity.from_s) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), validity.until_s) != nullptr;
}

bool SetCommonName(X509_NAME* name, const std::string& text) {
  return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()), -1, 0) == 1;
}

// `value` is in the language of openssl.cnf. The caller has checked what it takes from people.
bool AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionPointer extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool AddGeneralName(GENERAL_NAMES* names, int type, const std::string& value) {
  GENERAL_NAME* name =
      a2i_GENERAL_NAME(nullptr, nullptr, nullptr, type, value.c_str(), /*is_nc=*/0);
  if (name == nullptr) return false;
  if (sk_GENERAL_NAME_push(names, name) > 0) return true;
  GENERAL_NAME_free(name);
  return false;
}

// Not by AddExtension(): a comma in a name would begin another name.
bool AddIssuedNames(X509* certificate, const CertificateRequest& request) {
  const OpenSslPointer<GENERAL_NAMES, &GENERAL_NAMES_free> names(GENERAL_NAMES_new());
  bool ok = true;
  for (const std::string& uri : request.uris) ok &= AddGeneralName(names.get(), GEN_URI, uri);
  for (const std::string& dns : request.dns_names) ok &= AddGeneralName(names.get(), GEN_DNS, dns);
  for (const std::string& ip : request.ip_addresses) {
    ok &= AddGeneralName(names.get(), GEN_IPADD, ip);
  }
  if (sk_GENERAL_NAME_num(names.get()) == 0) return ok;
  return ok && X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0,
                                 X509V3_ADD_DEFAULT) == 1;
}

// A certificate without extensions and signature.
CertificatePointer Begin(EVP_PKEY* key, const std::string& common_name, const X509_NAME* issuer,
                         const Validity& validity) {
  CertificatePointer certificate(X509_new());
  const IntegerPointer serial = RandomSerial();
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  const bool ok =
      serial != nullptr && X509_set_version(certificate.get(), kVersion3) == 1 &&
      X509_set_serialNumber(certificate.get(), serial.get()) == 1 &&
      SetTimes(certificate.get(), validity) && SetCommonName(subject, common_name) &&
      X509_set_pubkey(certificate.get(), key) == 1 &&
      X509_set_issuer_name(certificate.get(), issuer != nullptr ? issuer : subject) == 1;
  return ok ? std::move(certificate) : nullptr;
}

struct Signer {
  CertificatePointer certificate;
  KeyPointer key;
};

absl::StatusOr<Signer> ReadSigner(const KeyAndCertificate& authority) {
  absl::StatusOr<std::vector<CertificatePointer>> chain =
      ReadCertificates(authority.certificate_pem);
  if (!chain.ok()) return chain.status();
  absl::StatusOr<KeyPointer> key = ReadKey(authority.key_pem);
  if (!key.ok()) return key.status();
  Signer signer{std::move(chain->front()), *std::move(key)};
  if (X509_check_private_key(signer.certificate.get(), signer.key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        "the key of the authority does not belong to its certificate");
  }
  return signer;
}

bool AddRevoked(X509_CRL* crl, const RevokedSerial& revoked) {
  const IntegerPointer serial = IntegerOf(revoked.serial);
  const TimePointer time(ASN1_TIME_set(nullptr, revoked.revoked_s));
  OpenSslPointer<X509_REVOKED, &X509_REVOKED_free> entry(X509_REVOKED_new());
  if (serial == nullptr || time == nullptr ||
      X509_REVOKED_set_serialNumber(entry.get(), serial.get()) != 1 ||
      X509_REVOKED_set_revocationDate(entry.get(), time.get()) != 1 ||
      X509_CRL_add0_revoked(crl, entry.get()) != 1) {
    return false;
  }
  (void)entry.release();  // the list owns it now
  return true;
}

bool AddCrlExtensions(X509_CRL* crl, X509* issuer, int64_t number) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, nullptr, nullptr, crl, 0);
  const ExtensionPointer authority(
      X509V3_EXT_conf_nid(nullptr, &context, NID_authority_key_identifier, "keyid:always"));
  const IntegerPointer value(ASN1_INTEGER_new());
  return authority != nullptr && X509_CRL_add_ext(crl, authority.get(), -1) == 1 &&
         ASN1_INTEGER_set_int64(value.get(), number) == 1 &&
         X509_CRL_add1_ext_i2d(crl, NID_crl_number, value.get(), 0, X509V3_ADD_DEFAULT) == 1;
}

}  // namespace

absl::StatusOr<KeyAndCertificate> MakeAuthority(const std::string& common_name,
                                                const Validity& validity, const std::string& uri) {
  const KeyPointer key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failed("a key");
  CertificateRequest names;
  if (!uri.empty()) names.uris.push_back(uri);
  const CertificatePointer certificate = Begin(key.get(), common_name, nullptr, validity);
  X509* own = certificate.get();
  if (own == nullptr ||
      !AddExtension(own, own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !AddExtension(own, own, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !AddExtension(own, own, NID_subject_key_identifier, "hash") || !AddIssuedNames(own, names) ||
      X509_sign(own, key.get(), EVP_sha256()) == 0) {
    return Failed("an authority");
  }
  return KeyAndCertificate{WritePem(own), WritePem(key.get())};
}

absl::StatusOr<KeyAndCertificate> IssueCertificate(const KeyAndCertificate& authority,
                                                   const CertificateRequest& request,
                                                   const Validity& validity) {
  const absl::StatusOr<Signer> signer = ReadSigner(authority);
  if (!signer.ok()) return signer.status();
  X509* issuer = signer->certificate.get();
  const KeyPointer key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failed("a key");
  const CertificatePointer certificate =
      Begin(key.get(), request.common_name, X509_get_subject_name(issuer), validity);
  X509* own = certificate.get();
  if (own == nullptr || !AddExtension(own, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
      !AddExtension(own, issuer, NID_key_usage, "critical,digitalSignature") ||
      !AddExtension(own, issuer, NID_ext_key_usage,
                    request.is_server ? "serverAuth,clientAuth" : "clientAuth") ||
      !AddExtension(own, issuer, NID_subject_key_identifier, "hash") ||
      !AddExtension(own, issuer, NID_authority_key_identifier, "keyid:always") ||
      !AddIssuedNames(own, request) || X509_sign(own, signer->key.get(), EVP_sha256()) == 0) {
    return Failed("a certificate");
  }
  return KeyAndCertificate{WritePem(own), WritePem(key.get())};
}

absl::StatusOr<std::string> MakeRevocationList(const KeyAndCertificate& authority,
                                               const std::vector<RevokedSerial>& revoked,
                                               int64_t number, const Validity& validity) {
  const absl::StatusOr<Signer> signer = ReadSigner(authority);
  if (!signer.ok()) return signer.status();
  X509* issuer = signer->certificate.get();
  const CrlPointer crl(X509_CRL_new());
  const TimePointer from(ASN1_TIME_set(nullptr, validity.from_s));
  const TimePointer until(ASN1_TIME_set(nullptr, validity.until_s));
  bool ok = X509_CRL_set_version(crl.get(), kCrlVersion2) == 1 &&
            X509_CRL_set_issuer_name(crl.get(), X509_get_subject_name(issuer)) == 1 &&
            X509_CRL_set1_lastUpdate(crl.get(), from.get()) == 1 &&
            X509_CRL_set1_nextUpdate(crl.get(), until.get()) == 1 &&
            AddCrlExtensions(crl.get(), issuer, number);
  for (const RevokedSerial& one : revoked) ok = ok && AddRevoked(crl.get(), one);
  if (!ok || X509_CRL_sort(crl.get()) != 1 ||
      X509_CRL_sign(crl.get(), signer->key.get(), EVP_sha256()) == 0) {
    return Failed("a revocation list");
  }
  return WritePem(crl.get());
}

absl::StatusOr<RevocationFacts> ParseRevocationList(std::string_view pem) {
  const absl::StatusOr<std::vector<CrlPointer>> lists = ReadCrls(pem);
  if (!lists.ok()) return lists.status();
  X509_CRL* list = lists->front().get();
  RevocationFacts facts;
  const IntegerPointer number(
      static_cast<ASN1_INTEGER*>(X509_CRL_get_ext_d2i(list, NID_crl_number, nullptr, nullptr)));
  if (number != nullptr) ASN1_INTEGER_get_int64(&facts.number, number.get());
  const STACK_OF(X509_REVOKED)* entries = X509_CRL_get_REVOKED(list);
  for (int i = 0; i < sk_X509_REVOKED_num(entries); ++i) {
    const X509_REVOKED* entry = sk_X509_REVOKED_value(entries, i);
    const BioPointer serial(BIO_new(BIO_s_mem()));
    i2a_ASN1_INTEGER(serial.get(), X509_REVOKED_get0_serialNumber(entry));
    std::tm parts = {};
    ASN1_TIME_to_tm(X509_REVOKED_get0_revocationDate(entry), &parts);
    facts.revoked.push_back({TextOf(serial.get()), timegm(&parts)});
  }
  return facts;
}

}  // namespace rollcall

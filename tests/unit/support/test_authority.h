// SPDX-License-Identifier: Apache-2.0
// Certificates for tests, made in memory: P-256, one authority, any names.
#pragma once

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace rollcall {

struct TestPair {
  std::string certificate_pem, key_pem;
};

// Issues certificates. Aborts the test program if OpenSSL fails.
class OpensslAuthority {
 public:
  explicit OpensslAuthority(const std::string& name = "test authority")
      : key_(EVP_EC_gen("P-256"), EVP_PKEY_free), certificate_(X509_new(), X509_free) {
    Begin(certificate_.get(), name, 0, 3600);
    X509_set_pubkey(certificate_.get(), key_.get());
    Extend(certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
    Sign(certificate_.get(), certificate_.get());
  }

  // `sans` as OpenSSL writes them: "DNS:localhost,IP:127.0.0.1,URI:spiffe://x/y", or empty. The
  // times are seconds from now.
  TestPair Issue(const std::string& sans, long from_s = -60, long until_s = 3600) const {
    const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    const Certificate certificate(X509_new(), X509_free);
    Begin(certificate.get(), "test", from_s, until_s);
    X509_set_pubkey(certificate.get(), key.get());
    if (!sans.empty()) Extend(certificate.get(), NID_subject_alt_name, sans);
    Sign(certificate.get(), certificate_.get());
    return {Pem(certificate.get()), Pem(key.get())};
  }
  std::string pem() const { return Pem(certificate_.get()); }

 private:
  using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

  static void Begin(X509* certificate, const std::string& name, long from_s, long until_s) {
    static long serial = 1;
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
    X509_gmtime_adj(X509_getm_notBefore(certificate), from_s);
    X509_gmtime_adj(X509_getm_notAfter(certificate), until_s);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  }
  static void Extend(X509* certificate, int nid, const std::string& value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
    if (extension == nullptr) abort();
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }
  void Sign(X509* certificate, X509* issuer) const {
    X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
    if (X509_sign(certificate, key_.get(), EVP_sha256()) == 0) abort();
  }
  template <typename Thing>
  static std::string Pem(Thing* thing) {
    BIO* bio = BIO_new(BIO_s_mem());
    if constexpr (std::is_same_v<Thing, X509>) {
      PEM_write_bio_X509(bio, thing);
    } else {
      PEM_write_bio_PrivateKey(bio, thing, nullptr, nullptr, 0, nullptr, nullptr);
    }
    char* text = nullptr;
    const long size = BIO_get_mem_data(bio, &text);
    std::string pem(text, static_cast<size_t>(size));
    BIO_free(bio);
    return pem;
  }

  Key key_;
  Certificate certificate_;
};

}  // namespace rollcall

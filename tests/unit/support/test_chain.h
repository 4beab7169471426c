// SPDX-License-Identifier: Apache-2.0
// An authority below another one, which TestAuthority does not make.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "security/certificates/openssl_types.h"
#include "security/certificates/pem.h"
#include "test_certificates.h"

namespace rollcall {

inline void AddTestExtension(X509* certificate, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const ExtensionPointer extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  ASSERT_NE(extension, nullptr);
  ASSERT_EQ(X509_add_ext(certificate, extension.get(), -1), 1);
}

// Signed by `issuer`; if nullptr, by itself. What it signs is made by IssueCertificate() and
// MakeRevocationList().
inline KeyAndCertificate MakeTestAuthority(const std::string& name, const KeyAndCertificate* issuer,
                                           const Validity& validity, long serial = 1) {
  const KeyPointer key(EVP_EC_gen("P-256"));
  const CertificatePointer own(X509_new());
  X509_set_version(own.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(own.get()), serial);
  ASN1_TIME_set(X509_getm_notBefore(own.get()), validity.from_s);
  ASN1_TIME_set(X509_getm_notAfter(own.get()), validity.until_s);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(own.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_pubkey(own.get(), key.get());
  AddTestExtension(own.get(), NID_basic_constraints, "critical,CA:TRUE");
  AddTestExtension(own.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  AddTestExtension(own.get(), NID_subject_key_identifier, "hash");
  if (issuer == nullptr) {
    X509_set_issuer_name(own.get(), X509_get_subject_name(own.get()));
    X509_sign(own.get(), key.get(), EVP_sha256());
  } else {
    const auto above = ReadCertificates(issuer->certificate_pem);
    const auto signer = ReadKey(issuer->key_pem);
    X509_set_issuer_name(own.get(), X509_get_subject_name(above->front().get()));
    X509_sign(own.get(), signer->get(), EVP_sha256());
  }
  return {WritePem(own.get()), WritePem(key.get())};
}

}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
// A folder with an authority of one's own and the certificates that it issued, for clusters that
// have no other: `rollcall pki`.
//
//   ca.crt ca.key ca.crl      the authority, its key, and what it revoked
//   NAME.crt NAME.key         the newest certificate of NAME, and its key
//   issued/SERIAL.crt         every certificate, because an older one of NAME stays valid
//   .lock                     held while a program writes
//
// Keys have mode 0600. Files are written as a whole. Errors name what to type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "security/pki/pki_names.h"

namespace rollcall {

enum class PkiState { kValid, kExpired, kRevoked };

struct PkiEntry {
  std::string name;
  std::string role;
  std::vector<std::string> hosts;  // names and addresses
  std::string uri;
  int64_t expires_s = 0;  // Unix time
  PkiState state = PkiState::kValid;
};

// Makes the folder and the authority. Refuses a folder that has one. Returns when it expires.
absl::StatusOr<int64_t> InitPki(const std::string& folder, const std::string& domain, int days,
                                int64_t now_s);

// Refuses a name that has a valid certificate. The certificate ends with the authority at the
// latest.
absl::StatusOr<PkiEntry> IssueInPki(const std::string& folder, const PkiRequest& request,
                                    int64_t now_s);

// A new key and a certificate with the same names. `days` 0 means for as long as the last one.
absl::StatusOr<PkiEntry> RenewInPki(const std::string& folder, const std::string& name, int days,
                                    int64_t now_s);

// Revokes all certificates of this name that are still valid. Returns their number.
absl::StatusOr<int> RevokeInPki(const std::string& folder, const std::string& name, int64_t now_s);

struct PkiList {
  std::vector<PkiEntry> entries;      // the newest certificate of each name, ordered by name
  std::vector<std::string> problems;  // files *.crt that are not certificates of this PKI, and why
};
absl::StatusOr<PkiList> ListPki(const std::string& folder, int64_t now_s);

}  // namespace rollcall

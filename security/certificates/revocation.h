// SPDX-License-Identifier: Apache-2.0
// Which certificates their authority has revoked. A value: thread-safe, cheap to copy. Remembers
// its answers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace rollcall {

class RevocationList {
 public:
  // Nothing is revoked.
  RevocationList() = default;

  // One or more lists in PEM. An authority in `ca_pem` must have signed each, also that of an
  // authority which another one has signed.
  static absl::StatusOr<RevocationList> Parse(std::string_view crl_pem, std::string_view ca_pem);

  // Returns whether a list revokes the first certificate in the text, or an authority above it:
  // these follow in the text, or `ca_pem` had them. Returns true if the text holds no certificate,
  // or more than ten. All lists of one authority count together. An expired list still counts: what
  // it revokes stays revoked.
  bool IsRevoked(std::string_view certificate_pem) const;

  // Whether an authority made its newest list of these before its newest one of `other`.
  bool IsOlderThan(const RevocationList& other) const;
  // Whether an authority that is still believed has a list in `other`, and none here.
  bool Forgets(const RevocationList& other) const;
  // Names of the authorities that are believed and have no list here: what they have signed is
  // never revoked.
  std::vector<std::string> AuthoritiesWithoutList() const;

  // When the authority promised the next list, at the latest: Unix time; 0 if it did not.
  int64_t expires_s() const { return expires_s_; }

 private:
  struct Lists;

  std::shared_ptr<const Lists> lists_;
  int64_t expires_s_ = 0;  // of the list that expires first
};

}  // namespace rollcall

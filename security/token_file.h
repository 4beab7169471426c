// SPDX-License-Identifier: Apache-2.0
// The daemon's --token-file: who may come in with which token. The file is read again when it
// changes; a file that is bad, gone or writable by others never replaces a good one.
//
// Thread-safe. One thread calls Poll(), any thread the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "base/watched_file.h"
#include "security/identity.h"
#include "security/token_list.h"

namespace rollcall {

class TokenFile {
 public:
  explicit TokenFile(std::string path);

  // Reads the file if it has changed. Returns an error as long as the newest content is not in use,
  // with its reason and what to do. After an error of the first call there are no tokens.
  absl::Status Poll();

  // kUnauthenticated: no such token, or it has expired. Both have the same message.
  absl::StatusOr<Identity> Identify(absl::string_view token, int64_t now_s) const;

  // Whether the token of this identity is still there, with the same role, tenants and hosts.
  bool IsStillValid(const Identity& identity, int64_t now_s) const;

 private:
  using Entries = std::vector<TokenEntry>;
  absl::Status Use(const std::string& text);
  std::shared_ptr<const Entries> entries() const;

  WatchedFile file_;           // of the thread that polls
  absl::Status last_content_;  // of the newest content; likewise
  mutable Mutex mutex_;
  std::shared_ptr<const Entries> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall

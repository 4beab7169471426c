// SPDX-License-Identifier: Apache-2.0
// The certificate, key, authorities and revocation list of this process, read again when the files
// change. Only what is valid replaces what was: while somebody writes the files one after the
// other, or writes nonsense, connections use the last good ones. A key that others may read is not
// used (secret_file.h).
//
// One owner calls Poll(), usually once a second; the other functions are thread-safe. Does not log.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/memory_file.h"
#include "base/mutex.h"
#include "base/repeated_message.h"
#include "base/watched_file.h"
#include "security/certificates/certificate.h"
#include "security/certificates/revocation.h"

namespace rollcall {

// Empty if there is none. A certificate needs a key.
struct TlsPaths {
  std::string certificate;  // with its chain
  std::string key;
  std::string authorities;  // whom this process believes: of clients, or of the daemon
  std::string revocations;  // by these authorities; needs them
};

// Files that are valid together.
struct TlsContents {
  std::string certificate_pem;
  std::string key_pem;
  std::string ca_pem;
  RevocationList revocations;
};

class TlsFiles {
 public:
  TlsFiles(TlsPaths paths, CertificateUse use);

  // Reads what has changed. The status is that of the files now: an error names which file is
  // unusable, why, and what to do, also while older contents are in use. Before the first OK there
  // is no Current().
  absl::Status Poll(int64_t now_s);
  // Warnings for the log, since the last call: what cannot be used, what expires soon. What stays
  // wrong is logged again after an hour. A problem that passes within seconds, such as a renewal in
  // two steps, is not logged.
  std::vector<std::string> TakeMessages();
  // Lines for the log that are not warnings: which certificate is in use now.
  std::vector<std::string> TakeNews();

  // What to use now. nullptr until all files were valid once.
  std::shared_ptr<const TlsContents> Current() const;
  // End of Current()'s certificate in Unix time; 0 without a certificate.
  int64_t expires_s() const;

  const TlsPaths& paths() const { return paths_; }
  CertificateUse use() const { return use_; }
  // Read by gRPC's file watcher: certificate and key in one file, and the authorities. These paths
  // stay the same, and valid until the process ends. "" before Current() exists, or without such a
  // file.
  std::string identity_path() const;
  std::string authorities_path() const;

 private:
  // One of the files.
  struct Source {
    explicit Source(const std::string& path);
    absl::Status Read();

    std::optional<WatchedFile> file;  // nullopt if not asked for
    std::string latest;               // its content
  };

  absl::Status ReadAll();
  absl::Status TakePair(int64_t now_s, TlsContents* contents);
  absl::Status TakeAuthorities(int64_t now_s, TlsContents* contents);
  absl::Status TakeRevocations(TlsContents* contents);
  absl::Status Publish(const TlsContents& contents, bool is_new_certificate);
  void AddMessage(RepeatedMessage* message, const std::string& text, int64_t now_s);
  void SayProblem(const absl::Status& status, int64_t now_s);
  void WarnOfExpiry(int64_t now_s);

  const TlsPaths paths_;
  const CertificateUse use_;

  // Only the thread that calls Poll() uses these.
  Source certificate_;
  Source key_;
  Source authorities_;
  Source revocations_;
  std::string revocations_taken_;  // text of contents.revocations, and its authorities
  int64_t issued_s_ = 0;           // of the certificate in use
  MemoryFile identity_file_;
  MemoryFile authorities_file_;
  std::optional<int64_t> problem_since_s_;
  RepeatedMessage problem_;
  RepeatedMessage expiry_;
  RepeatedMessage list_expiry_;
  std::vector<std::string> messages_, news_;

  mutable Mutex mutex_;
  std::shared_ptr<const TlsContents> current_ ABSL_GUARDED_BY(mutex_);
  int64_t expires_s_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string identity_path_ ABSL_GUARDED_BY(mutex_);
  std::string authorities_path_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall

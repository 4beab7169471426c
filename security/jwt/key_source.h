// SPDX-License-Identifier: Apache-2.0
// Keeps the keys of --jwks up to date: a file, which is read again when it changes, or a URL, which
// is fetched every ten minutes and when a token names an unknown key. What is bad or cannot be
// fetched never replaces a good set.
//
// Thread-safe. Has a thread, which may outlive the object while it waits for the network.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/worker.h"
#include "security/jwt/key_fetch.h"
#include "security/jwt/key_set.h"

namespace rollcall {

// When to fetch: every ten minutes; within 30 s after a failure or the wish for an unknown key.
// Pure. Times are seconds of any steady clock.
class FetchSchedule {
 public:
  bool IsDue(int64_t now_s, bool is_wanted) const;
  void RecordFetch(int64_t now_s, bool worked);

 private:
  bool has_tried_ = false;
  bool worked_ = false;
  int64_t last_s_ = 0;
};

// `read` gives the text of a key set; "" if it has not changed. May block.
using ReadKeys = std::function<absl::StatusOr<std::string>()>;
ReadKeys ReadKeysFromFile(const std::string& path);
ReadKeys ReadKeysFromUrl(const KeyLocation& location);

class KeySource {
 public:
  // Keys of a file: looks at it every second.
  static std::unique_ptr<KeySource> Watch(ReadKeys read);
  // Keys of a URL.
  static std::unique_ptr<KeySource> Fetch(ReadKeys read);
  ~KeySource();
  KeySource(const KeySource&) = delete;
  KeySource& operator=(const KeySource&) = delete;

  // nullptr if none has been read yet.
  std::shared_ptr<const KeySet> keys() const;
  // The result of the last try, which names what to do.
  absl::Status status() const;
  // A token named a key that is not there.
  void WantNewKeys();

 private:
  struct State;
  KeySource(ReadKeys read, bool is_file);

  const std::shared_ptr<State> state_;
  Worker worker_;
};

}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
// Remembers over a restart whether there were other daemons: it decides what this daemon may do
// while the database does not answer at its start. One thread uses it.
#pragma once

#include <string>

namespace rollcall {

class AloneFile {
 public:
  // `path`: empty if nothing remembers.
  explicit AloneFile(std::string path);

  // Whether the file says so. Without the file this is the first start, and the daemon was alone.
  bool is_alone() const { return is_alone_; }
  // Writes the file if that changes what it says. After an error the next call tries again.
  void Save(bool is_alone);

 private:
  const std::string path_;
  bool is_alone_;
};

}  // namespace rollcall

// The folder of one `rollcall run`, for its job's segments alone.
//
// It lies in shared memory (or below $ROLLCALL_DIR) and goes with the run. What
// a run that was killed left behind goes with the next one.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace rollcall {

class JobDirectory {
 public:
  absl::Status Make();
  void Remove();

  const std::string& path() const { return path_; }

  // A file whose time the library renews when it is loaded (ROLLCALL_LOADED).
  std::string loaded_file() const { return path_ + "/loaded"; }
  bool loaded() const;

 private:
  std::string path_;  // "" while there is none
};

}  // namespace rollcall

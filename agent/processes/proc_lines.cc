// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/proc_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/monotonic_clock.h"
#include "base/unique_fd.h"

namespace rollcall {
namespace {

// Takes pieces of a file, and gives whole lines.
class LineSplitter {
 public:
  explicit LineSplitter(const std::function<void(absl::string_view)>& each) : each_(each) {}

  void Add(absl::string_view piece) {
    for (size_t end = piece.find('\n'); end != absl::string_view::npos; end = piece.find('\n')) {
      Append(piece.substr(0, end));
      EndLine();
      piece.remove_prefix(end + 1);
    }
    Append(piece);
  }

  void EndLine() {
    if (!too_long_ && !line_.empty()) each_(line_);
    line_.clear();
    too_long_ = false;
  }

 private:
  void Append(absl::string_view part) {
    too_long_ = too_long_ || line_.size() + part.size() > kLongestProcLine;
    if (!too_long_) line_.append(part.data(), part.size());
  }

  const std::function<void(absl::string_view)>& each_;
  std::string line_;
  bool too_long_ = false;
};

}  // namespace

bool ForEachProcLine(const std::string& path, int64_t deadline_ns,
                     const std::function<void(absl::string_view)>& each) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return false;
  LineSplitter lines(each);
  char piece[16384];
  while (MonotonicNs() <= deadline_ns) {
    const ssize_t size = read(fd.get(), piece, sizeof(piece));
    if (size < 0 && errno == EINTR) continue;
    if (size == 0) lines.EndLine();
    if (size <= 0) return size == 0;
    lines.Add(absl::string_view(piece, static_cast<size_t>(size)));
  }
  return false;
}

}  // namespace rollcall

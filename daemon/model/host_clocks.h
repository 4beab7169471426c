// Brings the times of many hosts onto one clock.
//
// A message says when it was made, by its host's clock, and the reader knows
// when it came. The smallest difference over many messages is the difference of
// the clocks and the quickest transfer, so errors are of the order of the
// network's latency. Clocks that drift or are set are followed, since old
// differences are forgotten.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace rollcall {

class HostClocks {
 public:
  // Notes that a message made at `made_ns` by the host's clock came at
  // `came_ns`. Returns what to add to the host's times.
  int64_t Note(const std::string& host, int64_t made_ns, int64_t came_ns);

 private:
  static constexpr int kWindow = 128;  // messages; two windows are remembered

  struct Clock {
    int64_t smallest_ns = 0, smallest_before_ns = 0;
    int seen = 0;
    bool has_before = false;
  };
  std::map<std::string, Clock> clocks_;
};

}  // namespace rollcall

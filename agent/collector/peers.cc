// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/peers.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/string_view.h"

namespace rollcall {
namespace {

// By which ranks talk without a thread whose name tells. NCCL and PyTorch have such threads, and
// programs that serve requests have mapped them, too.
constexpr absl::string_view kTalksByTcp[] = {"jax", "ucc", "oneccl", "hccl", "gloo"};

bool HasMapped(const std::vector<std::string>& libraries, absl::string_view library) {
  return std::find(libraries.begin(), libraries.end(), library) != libraries.end();
}

// They run the same program on the same library. JAX has no launcher, so that each may come from a
// shell of its own.
bool AreOfAKind(const Talker& one, const Talker& other) {
  if (one.script != other.script) return false;
  if (one.is_rank && other.is_rank) return true;
  return std::any_of(std::begin(kTalksByTcp), std::end(kTalksByTcp), [&](absl::string_view name) {
    const bool is_shared = HasMapped(one.libraries, name) && HasMapped(other.libraries, name);
    return is_shared && (name == "jax" || one.ppid == other.ppid);
  });
}

class Meshes {
 public:
  void Join(pid_t one, pid_t other) {
    const pid_t first = std::min(First(one), First(other));
    before_[First(one)] = before_[First(other)] = first;
  }

  std::map<pid_t, pid_t> Firsts() const {
    std::map<pid_t, pid_t> firsts;
    for (const auto& [pid, before] : before_) firsts[pid] = First(pid);
    return firsts;
  }

 private:
  pid_t First(pid_t pid) const {
    for (auto at = before_.find(pid); at != before_.end() && at->second != pid;
         at = before_.find(pid)) {
      pid = at->second;
    }
    return pid;
  }

  std::map<pid_t, pid_t> before_;  // by process: one of its mesh that is not above it, or itself
};

}  // namespace

bool MayTalkByTcp(const std::vector<std::string>& libraries) {
  return std::any_of(std::begin(kTalksByTcp), std::end(kTalksByTcp),
                     [&](absl::string_view name) { return HasMapped(libraries, name); });
}

std::map<pid_t, pid_t> FindMeshes(const std::vector<Talker>& talkers,
                                  const std::vector<ConnectedPair>& pairs,
                                  const std::function<bool(pid_t, pid_t)>& is_above) {
  std::map<pid_t, const Talker*> by_pid;
  for (const Talker& talker : talkers) by_pid[talker.pid] = &talker;
  Meshes meshes;
  for (const auto& [one, other] : pairs) {
    const auto first = by_pid.find(one), second = by_pid.find(other);
    if (first == by_pid.end() || second == by_pid.end()) continue;
    if (!AreOfAKind(*first->second, *second->second)) continue;
    if (is_above(one, other) || is_above(other, one)) continue;
    meshes.Join(one, other);
  }
  return meshes.Firsts();
}

}  // namespace rollcall

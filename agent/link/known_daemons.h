// SPDX-License-Identifier: Apache-2.0
// Which daemons an agent has learned of, and which of its streams lead to them.
//
// A stream is named by the address that the agent connects to. Its daemon may call itself by
// another one, which is the one that counts here: an address of a name in DNS, or of a load
// balancer.
//
// Pure: the caller gives the time, in nanoseconds of one clock that only ascends. One owner, no
// lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rollcall {

class KnownDaemons {
 public:
  // A daemon is away if it has not welcomed a new stream within this time,
  static constexpr int64_t kWelcomeWithin = 3'000'000'000;
  // or if its stream broke, and the agent isn't welcome again after this time or fails before.
  static constexpr int64_t kBackWithin = 1'000'000'000;
  static constexpr size_t kMostDaemons = 64;  // that a daemon may name

  // `given`: the addresses that the agent begins with, at least one.
  explicit KnownDaemons(std::vector<std::string> given) : given_(std::move(given)) {}

  // What the agent learns. False if there is nothing new.
  bool SetGiven(std::vector<std::string> given);
  bool SetDaemons(const std::vector<std::string>& daemons);
  void Opened(const std::string& stream, int64_t now_ns);
  // `address`: what the daemon calls itself. `stays`: the agent goes on with the stream.
  bool Welcomed(const std::string& stream, const std::string& address, bool stays, int64_t now_ns);
  bool Broken(const std::string& stream, int64_t now_ns);
  bool Closed(const std::string& stream) { return streams_.erase(stream) != 0; }
  // Looks which daemons have become away by now. Lowers `*next_ns` to the time of the next look.
  bool Expire(int64_t now_ns, int64_t* next_ns);

  // Whether the agent may connect to this address because a daemon listed it.
  bool IsUsable(const std::string& address) const;
  const std::string& DaemonOf(const std::string& stream) const;
  bool IsAway(const std::string& daemon) const;
  // Returns the one stream to the daemon that counts, or nullptr.
  const std::string* StreamTo(const std::string& daemon) const;
  // The same, and to a daemon that is away also the stream to its own address: that of a name or
  // of a load balancer may lead elsewhere by now.
  void AddStreamTo(const std::string& daemon, std::set<std::string>* streams) const;
  const std::vector<std::string>& given() const { return given_; }
  std::vector<std::string> All() const;
  // Those that are not away, or all if every one is away.
  std::vector<std::string> Living() const;
  // Whether a daemon has named this address as one of several.
  bool IsInFleet(const std::string& address) const;

 private:
  enum class State : uint8_t { kHere, kBroken, kOpening, kAway };  // the better first
  struct Stream {
    State state = State::kOpening;
    int64_t since_ns = 0;
    std::string daemon;  // what it calls itself
  };

  std::vector<std::string> given_;
  std::vector<std::string> daemons_;  // that a daemon has named; empty if none has
  std::map<std::string, Stream> streams_;
};

}  // namespace rollcall

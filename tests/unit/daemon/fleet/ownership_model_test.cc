// SPDX-License-Identifier: Apache-2.0
// Who owns a job, in all orders of events: two or three daemons, one job, one database.
//
// The model follows daemon/fleet/fleet_store.h: a daemon renews its lease (two statements: Renew,
// then Owned), claims the job, gives it away, writes about it and alerts. Between any two steps any
// time may pass: so a daemon may stand still or be cut off for as long as it likes. A request may
// never arrive, or arrive after the daemon has given it up, and answers may be lost. Clocks of
// daemons go at other speeds than the database's. The lease is the real class.
//
// Invariants, in every state that can be reached:
//   kOneOwner    no two daemons both hold a lease by their own view and believe that the job is
//                theirs: so no two may alert
//   kAwake       a daemon may not act once the database may have ended the lease that it asked
//                for, however long it stood still: not before it has renewed
//   kNewerStays  no write is applied after one of a later ownership
// And, if the owner dies in any of these states while the others and the database are well:
//   kSuccessor   within 10 s another daemon owns the job and knows it; well means that each
//                request takes a second at most
//
// A tick is a second, or two. What the model leaves out: a statement is one step, because the
// statements lock what they read (fleet_store_test.cc tries that on a server); the clock of the
// database does not jump; and an alert that is asked for and sent is one step. A daemon that stands
// still between the two sends late, and the receiver knows the alert by its key, which is the same
// for both daemons.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "daemon/fleet/lease.h"

namespace rollcall {
namespace {

constexpr int kMostDaemons = 3;
constexpr int kNobody = kMostDaemons;
constexpr int kMostAge = 7;  // one more than any lease: over
constexpr int kGoneFor = 10;

// What daemons and database do. The tests below break one rule each.
struct Rules {
  int daemons = 2;
  int length = 6, margin = 1, renew_every = 2;            // ticks
  std::array<int, kMostDaemons> speed = {100, 100, 100};  // of the daemons' clocks, in percent
  bool has_late_requests = true;  // that arrive after the daemon has given them up
  bool has_hand_over = false;
  bool has_writes = false;

  bool counts_from_request = true;  // else from the answer
  bool asks_what_it_owns = true;    // else a renewal alone is enough
  bool stops_before_hand_over = true;
  bool voids_late_hand_over = true;  // when the daemon asks again what it owns
  bool checks_tokens = true;
  bool checks_awake = true;  // else kOneOwner alone is looked for, which takes more steps to break
};

// Owned() follows Renew() at once: its own way to the database is a part of that of the answer.
enum Phase : uint8_t {
  kIdle,
  kRenewSent,
  kRenewDone,
  kOwnedRead,
  kClaimSent,
  kClaimDone,
  kClaimRead,
  kGiveSent,
  kGiveDone
};
// The same in ticks of two seconds, for what needs many states.
Rules OfThreeTicks() {
  Rules rules;
  rules.length = 3;
  rules.renew_every = 1;
  rules.speed = {80, 80, 80};
  return rules;
}

enum Answer : uint8_t { kNoAnswer, kNotMine, kMine };
enum Write : uint8_t { kNoWrite, kNewWrite, kOldWrite };  // by its token, against the database's

struct Daemon {
  uint8_t phase = kIdle;
  uint8_t is_dead = 0;
  uint8_t asked_age = 0;         // of the renewal under way
  uint8_t lease_age = kMostAge;  // of the request of the last renewal
  uint8_t has_waited = 0;        // after a death: for a tick, since it sent its request
  uint8_t believes = 0;          // that the job is its own
  uint8_t is_behind = 0;         // by a token that is not the database's any more
  uint8_t answer = kNoAnswer, answer_behind = 0;
  uint8_t late_renew = 0, late_claim = 0, late_give = 0;  // may still arrive
  uint8_t db_lease = 0;                                   // ticks left, by the database
  uint8_t write = kNoWrite;                               // that waits
  uint8_t is_owner = 0;                                   // by the database
};

constexpr std::pair<uint8_t Daemon::*, int> kBits[] = {
    {&Daemon::phase, 4},      {&Daemon::is_dead, 1},    {&Daemon::asked_age, 3},
    {&Daemon::lease_age, 3},  {&Daemon::has_waited, 1}, {&Daemon::believes, 1},
    {&Daemon::is_behind, 1},  {&Daemon::answer, 2},     {&Daemon::answer_behind, 1},
    {&Daemon::late_renew, 1}, {&Daemon::late_claim, 1}, {&Daemon::late_give, 1},
    {&Daemon::db_lease, 3},   {&Daemon::write, 2},      {&Daemon::is_owner, 1}};
constexpr int kDaemonBits = 26;

struct State {
  std::array<Daemon, kMostDaemons> daemons;
  uint8_t has_newest = 0;  // a write of the present ownership was applied
  uint8_t gone_for = 0;    // ticks since the owner died

  int owner() const {
    for (int d = 0; d < kMostDaemons; ++d) {
      if (daemons[static_cast<size_t>(d)].is_owner != 0) return d;
    }
    return kNobody;
  }
};

using Key = std::pair<uint64_t, uint32_t>;

uint64_t Packed(const Daemon& daemon) {
  uint64_t bits = 0;
  for (const auto& [member, width] : kBits) bits = bits << width | daemon.*member;
  return bits;
}

Daemon Unpacked(uint64_t bits) {
  Daemon daemon;
  for (size_t i = std::size(kBits); i-- > 0;) {
    daemon.*kBits[i].first = static_cast<uint8_t>(bits & ((uint64_t{1} << kBits[i].second) - 1));
    bits >>= kBits[i].second;
  }
  return daemon;
}

State StateOf(const Key& key) {
  State state;
  constexpr uint64_t kOne = (uint64_t{1} << kDaemonBits) - 1;
  state.daemons = {Unpacked(key.first & kOne), Unpacked(key.first >> kDaemonBits & kOne),
                   Unpacked(key.second)};
  state.has_newest = static_cast<uint8_t>(key.first >> 2 * kDaemonBits & 1);
  state.gone_for = static_cast<uint8_t>(key.first >> (2 * kDaemonBits + 1));
  return state;
}

class Model {
 public:
  explicit Model(const Rules& rules) : rules_(rules) {}

  // Empty if every invariant holds in every state. Else the first that does not.
  std::string Explore();
  size_t states() const { return seen_.size(); }
  // For each state that Explore() found: the owner dies.
  std::string ExploreDeaths();

 private:
  using Visit = std::function<void(State)>;

  bool IsHeldAt(int d, int age) const {
    Lease lease(rules_.length * 100, rules_.margin * 100);
    lease.Renewed(0);
    return age < kMostAge && lease.IsHeld(age * rules_.speed[static_cast<size_t>(d)]);
  }
  bool IsHeld(int d, const Daemon& daemon) const { return IsHeldAt(d, daemon.lease_age); }
  // A lease that is over does not get older.
  uint8_t Older(int d, uint8_t age) const {
    return IsHeldAt(d, age + 1) ? static_cast<uint8_t>(age + 1) : uint8_t{kMostAge};
  }
  bool MayAct(int d, const Daemon& daemon) const {
    return daemon.is_dead == 0 && daemon.believes != 0 && IsHeld(d, daemon);
  }
  bool MustRenew(int d, const Daemon& daemon) const {
    return daemon.lease_age * rules_.speed[static_cast<size_t>(d)] >= rules_.renew_every * 100;
  }
  bool WantsClaim(int d, const Daemon& daemon) const {
    return daemon.believes == 0 && IsHeld(d, daemon);
  }

  std::string Broken(const State& state) const;
  Key KeyOf(const State& state) const;
  void Successors(const State& state, const Visit& visit) const;
  void Tick(State state, const Visit& visit) const;
  void OfDaemon(const State& state, int d, const Visit& visit) const;
  void OfDatabase(const State& state, int d, const Visit& visit) const;
  void LateRequests(const State& state, int d, const Visit& visit) const;
  void GiveUp(State state, int d, const Visit& visit) const;
  void ApplyWrite(State state, int d, const Visit& visit) const;
  void ApplyClaim(State* state, int d) const;
  void ApplyGive(State* state, int d) const;
  bool MayTick(const State& state) const;
  void SetOwner(State* state, int owner) const;
  static void BeginIdle(Daemon* daemon);

  const Rules rules_;
  absl::flat_hash_set<Key> seen_;
  std::vector<Key> found_;  // in the order of the steps that they need
  mutable std::string broken_;
};

Key Model::KeyOf(const State& state) const {
  std::array<uint64_t, kMostDaemons> parts = {0, 0, 0};
  bool is_symmetric = true;
  for (int d = 0; d < kMostDaemons; ++d) {
    const auto at = static_cast<size_t>(d);
    parts[at] = d < rules_.daemons ? Packed(state.daemons[at]) : 0;
    is_symmetric = is_symmetric && (d >= rules_.daemons || rules_.speed[at] == rules_.speed[0]);
  }
  // Daemons with equal clocks may change places.
  for (const size_t i : {0u, 1u, 0u}) {
    if (is_symmetric && parts[i] < parts[i + 1]) std::swap(parts[i], parts[i + 1]);
  }
  return {parts[0] | parts[1] << kDaemonBits | uint64_t{state.has_newest} << 2 * kDaemonBits |
              uint64_t{state.gone_for} << (2 * kDaemonBits + 1),
          static_cast<uint32_t>(parts[2])};
}

std::string Model::Broken(const State& state) const {
  int actors = 0;
  for (int d = 0; d < rules_.daemons; ++d) {
    const Daemon& daemon = state.daemons[static_cast<size_t>(d)];
    actors += MayAct(d, daemon) ? 1 : 0;
    if (rules_.checks_awake && MayAct(d, daemon) && daemon.lease_age >= rules_.length)
      return "kAwake";
  }
  return actors > 1 ? "kOneOwner" : "";
}

// Each change of owner has a higher token.
void Model::SetOwner(State* state, int owner) const {
  state->has_newest = 0;
  for (Daemon& daemon : state->daemons) {
    daemon.is_owner = &daemon == &state->daemons[static_cast<size_t>(owner)] ? 1 : 0;
    daemon.is_behind = rules_.has_writes ? daemon.believes : uint8_t{0};
    daemon.answer_behind = rules_.has_writes && daemon.answer == kMine ? 1 : 0;
    if (daemon.write == kNewWrite) daemon.write = kOldWrite;
  }
}

void Model::BeginIdle(Daemon* daemon) {
  daemon->phase = kIdle;
  daemon->has_waited = 0;
  daemon->asked_age = 0;
  daemon->answer = kNoAnswer;
  daemon->answer_behind = 0;
}

void Model::ApplyClaim(State* state, int d) const {
  const int owner = state->owner();
  if (state->daemons[static_cast<size_t>(d)].db_lease == 0 || owner == d) return;
  if (owner == kNobody || state->daemons[static_cast<size_t>(owner)].db_lease == 0)
    SetOwner(state, d);
}

// To the next daemon, if it lives.
void Model::ApplyGive(State* state, int d) const {
  const int to = (d + 1) % rules_.daemons;
  if (state->owner() == d && state->daemons[static_cast<size_t>(to)].db_lease > 0)
    SetOwner(state, to);
}

// After the death requests are sent as soon as they are due, and have their answer within a tick.
bool Model::MayTick(const State& state) const {
  if (state.gone_for == 0) return true;
  for (int d = 0; d < rules_.daemons; ++d) {
    const Daemon& daemon = state.daemons[static_cast<size_t>(d)];
    if (daemon.is_dead != 0) continue;
    const bool is_due = daemon.phase == kIdle ? MustRenew(d, daemon) || WantsClaim(d, daemon)
                                              : daemon.has_waited != 0;
    if (is_due) return false;
  }
  return true;
}

void Model::Tick(State state, const Visit& visit) const {
  if (!MayTick(state)) return;
  for (int d = 0; d < rules_.daemons; ++d) {
    Daemon& daemon = state.daemons[static_cast<size_t>(d)];
    if (daemon.db_lease > 0) --daemon.db_lease;
    if (daemon.is_dead != 0) continue;
    const bool renews = daemon.phase >= kRenewSent && daemon.phase <= kOwnedRead;
    if (renews) daemon.asked_age = Older(d, daemon.asked_age);
    daemon.lease_age = Older(d, daemon.lease_age);
    if (state.gone_for > 0) daemon.has_waited = 1;
  }
  if (state.gone_for > 0) ++state.gone_for;
  visit(state);
}

void Model::OfDaemon(const State& state, int d, const Visit& visit) const {
  const auto at = static_cast<size_t>(d);
  const auto next = [&](const std::function<void(Daemon*)>& change) {
    State changed = state;
    change(&changed.daemons[at]);
    visit(changed);
  };
  const auto send = [&](Phase phase) {
    next([&](Daemon* daemon) {
      BeginIdle(daemon);
      daemon->phase = phase;
    });
  };
  const Daemon& now = state.daemons[at];
  if (rules_.has_writes && now.write == kNoWrite && MayAct(d, now)) {
    next([](Daemon* daemon) { daemon->write = daemon->is_behind != 0 ? kOldWrite : kNewWrite; });
  }
  switch (now.phase) {
    case kIdle:
      if (MustRenew(d, now)) send(kRenewSent);
      // A daemon that is well renews first.
      if (WantsClaim(d, now) && (state.gone_for == 0 || !MustRenew(d, now))) send(kClaimSent);
      if (rules_.has_hand_over && MayAct(d, now)) {
        next([&](Daemon* daemon) {
          BeginIdle(daemon);
          daemon->phase = kGiveSent;
          if (rules_.stops_before_hand_over) daemon->believes = daemon->is_behind = 0;
        });
      }
      return;
    case kOwnedRead:
      next([&](Daemon* daemon) {
        daemon->believes = daemon->answer == kMine ? 1 : 0;
        daemon->is_behind = daemon->answer_behind;
        daemon->lease_age = rules_.counts_from_request ? daemon->asked_age : uint8_t{0};
        BeginIdle(daemon);
      });
      return;
    case kClaimRead:
      next([&](Daemon* daemon) {
        if (daemon->answer == kMine) {
          daemon->believes = 1;
          daemon->is_behind = daemon->answer_behind;
        }
        BeginIdle(daemon);
      });
      return;
    case kGiveDone:
      next([&](Daemon* daemon) {
        daemon->believes = daemon->is_behind = 0;
        BeginIdle(daemon);
      });
      return;
    default:
      return;
  }
}

// The daemon waits no longer. Its request may still arrive.
void Model::GiveUp(State state, int d, const Visit& visit) const {
  Daemon& daemon = state.daemons[static_cast<size_t>(d)];
  if (daemon.phase == kIdle || state.gone_for > 0) return;
  if (rules_.has_late_requests) {
    if (daemon.phase == kRenewSent) daemon.late_renew = 1;
    if (daemon.phase == kClaimSent) daemon.late_claim = 1;
    if (daemon.phase == kGiveSent) daemon.late_give = 1;
  }
  BeginIdle(&daemon);
  visit(state);
}

void Model::OfDatabase(const State& state, int d, const Visit& visit) const {
  State next = state;
  Daemon& daemon = next.daemons[static_cast<size_t>(d)];
  const auto answer = [&](Phase phase) {
    daemon.answer = daemon.is_owner != 0 ? kMine : kNotMine;
    daemon.phase = phase;
  };
  switch (daemon.phase) {
    case kRenewSent:
      daemon.db_lease = static_cast<uint8_t>(rules_.length);
      daemon.phase = kRenewDone;
      break;
    case kRenewDone:
      if (rules_.voids_late_hand_over) daemon.late_give = 0;
      answer(kOwnedRead);
      if (!rules_.asks_what_it_owns) daemon.answer = daemon.believes != 0 ? kMine : kNotMine;
      break;
    case kClaimSent:
      if (rules_.voids_late_hand_over) daemon.late_give = 0;
      ApplyClaim(&next, d);
      daemon.phase = kClaimDone;
      break;
    case kClaimDone:
      answer(kClaimRead);
      break;
    case kGiveSent:
      ApplyGive(&next, d);
      daemon.phase = kGiveDone;
      break;
    default:
      return;
  }
  visit(next);
}

void Model::LateRequests(const State& state, int d, const Visit& visit) const {
  const auto at = static_cast<size_t>(d);
  if (state.daemons[at].late_renew != 0) {
    State next = state;
    next.daemons[at].late_renew = 0;
    next.daemons[at].db_lease = static_cast<uint8_t>(rules_.length);
    visit(next);
  }
  if (state.daemons[at].late_claim != 0) {
    State next = state;
    next.daemons[at].late_claim = 0;
    ApplyClaim(&next, d);
    visit(next);
  }
  if (state.daemons[at].late_give != 0) {
    State next = state;
    next.daemons[at].late_give = 0;
    ApplyGive(&next, d);
    visit(next);
  }
}

void Model::ApplyWrite(State state, int d, const Visit& visit) const {
  Daemon& daemon = state.daemons[static_cast<size_t>(d)];
  const uint8_t write = std::exchange(daemon.write, uint8_t{kNoWrite});
  if (write == kNoWrite) return;
  const bool is_applied = write == kNewWrite || !rules_.checks_tokens;
  if (is_applied && write == kOldWrite && state.has_newest != 0) {
    broken_ = "kNewerStays";
  }
  if (is_applied && write == kNewWrite) state.has_newest = 1;
  visit(state);
}

void Model::Successors(const State& state, const Visit& visit) const {
  Tick(state, visit);
  for (int d = 0; d < rules_.daemons; ++d) {
    const auto at = static_cast<size_t>(d);
    if (state.daemons[at].is_dead != 0) continue;
    OfDatabase(state, d, visit);
    LateRequests(state, d, visit);
    ApplyWrite(state, d, visit);
    OfDaemon(state, d, visit);
    GiveUp(state, d, visit);
  }
}

std::string Model::Explore() {
  const Visit visit = [&](const State& state) {
    const Key key = KeyOf(state);
    if (!broken_.empty() || !seen_.insert(key).second) return;
    broken_ = Broken(state);
    found_.push_back(key);
  };
  visit(State());
  for (size_t i = 0; i < found_.size() && broken_.empty(); ++i)
    Successors(StateOf(found_[i]), visit);
  return broken_;
}

std::string Model::ExploreDeaths() {
  std::vector<State> waiting;
  seen_.clear();
  const Visit visit = [&](const State& state) {
    const int owner = state.owner();
    const bool has_successor =
        owner != kNobody && MayAct(owner, state.daemons[static_cast<size_t>(owner)]);
    if (has_successor || !broken_.empty() || !seen_.insert(KeyOf(state)).second) return;
    if (state.gone_for > kGoneFor) broken_ = "kSuccessor";
    waiting.push_back(state);
  };
  for (const Key& key : found_) {
    State state = StateOf(key);
    const int owner = state.owner();
    if (owner == kNobody) continue;
    for (Daemon& daemon : state.daemons) {
      daemon.late_renew = daemon.late_claim = daemon.late_give = 0;
      daemon.write = kNoWrite;
    }
    Daemon dead;
    dead.is_dead = dead.is_owner = 1;
    dead.db_lease = state.daemons[static_cast<size_t>(owner)].db_lease;
    state.daemons[static_cast<size_t>(owner)] = dead;
    state.gone_for = 1;
    visit(state);
  }
  while (!waiting.empty() && broken_.empty()) {
    const State state = waiting.back();
    waiting.pop_back();
    Successors(state, visit);
  }
  return broken_;
}

// With the slowest clocks that are allowed, and with the slowest and the fastest.
TEST(OwnershipModelTest, NoTwoDaemonsEverOwnAJobHoweverLongEitherStandsStill) {
  for (const int speed : {95, 105}) {
    Rules rules;
    rules.speed = {speed, 95, 95};
    rules.has_late_requests = false;
    Model model(rules);
    EXPECT_EQ(model.Explore(), "");
    std::cout << model.states() << " states\n";
    EXPECT_GT(model.states(), 10'000u);
  }
}

TEST(OwnershipModelTest, NorIfRequestsArriveLate) {
  Model model(OfThreeTicks());
  EXPECT_EQ(model.Explore(), "");
  std::cout << model.states() << " states\n";
  EXPECT_GT(model.states(), 10'000u);
}

TEST(OwnershipModelTest, NorWhileTheyGiveAJobToEachOther) {
  Rules rules = OfThreeTicks();
  rules.has_hand_over = true;
  Model model(rules);
  EXPECT_EQ(model.Explore(), "");
  std::cout << model.states() << " states\n";
}

TEST(OwnershipModelTest, NorDoThreeDaemons) {
  Rules rules = OfThreeTicks();
  rules.daemons = 3;
  rules.has_late_requests = false;
  Model model(rules);
  EXPECT_EQ(model.Explore(), "");
  std::cout << model.states() << " states\n";
}

TEST(OwnershipModelTest, ADeadDaemonIsReplacedWithinTenSeconds) {
  for (const int speed : {95, 105}) {
    Rules rules;
    rules.speed = {speed, speed, speed};
    rules.has_late_requests = false;
    Model model(rules);
    ASSERT_EQ(model.Explore(), "");
    EXPECT_EQ(model.ExploreDeaths(), "") << speed;
    std::cout << model.states() << " states after a death\n";
  }
}

TEST(OwnershipModelTest, AnOldWriteIsNeverAppliedAfterANewerOne) {
  Rules rules;
  rules.speed = {95, 95, 95};
  rules.has_writes = true;
  rules.has_late_requests = false;
  Model model(rules);
  EXPECT_EQ(model.Explore(), "");
  std::cout << model.states() << " states\n";
}

// The model can fail: each of these breaks one rule.

std::string Found(const std::function<void(Rules*)>& change) {
  Rules rules;
  rules.speed = {95, 95, 95};
  rules.checks_awake = false;
  rules.has_late_requests = false;
  change(&rules);
  Model model(rules);
  return model.Explore();
}

TEST(OwnershipModelTest, FindsTwoOwnersWithoutAMargin) {
  EXPECT_EQ(Found([](Rules* rules) { rules->margin = 0; }), "kOneOwner")
      << "with clocks that lose 5 %";
  // With clocks of one speed the lease ends for both at once, and that is enough.
  EXPECT_EQ(Found([](Rules* rules) {
              *rules = OfThreeTicks();
              rules->margin = 0;
              rules->speed = {100, 100, 100};
            }),
            "");
}

TEST(OwnershipModelTest, FindsADaemonThatActsTooLateWithoutAMargin) {
  EXPECT_EQ(Found([](Rules* rules) {
              rules->margin = 0;
              rules->checks_awake = true;
            }),
            "kAwake");
}

TEST(OwnershipModelTest, FindsTwoOwnersWithClocksThatLoseMoreThanTheMargin) {
  EXPECT_EQ(Found([](Rules* rules) { rules->speed = {80, 80, 80}; }), "kOneOwner");
  EXPECT_EQ(Found([](Rules* rules) {
              rules->speed = {85, 85, 85};
              rules->has_late_requests = false;
            }),
            "")
      << "by 15 %: less than a sixth";
}

TEST(OwnershipModelTest, FindsTwoOwnersIfALeaseCountsFromTheAnswer) {
  EXPECT_EQ(Found([](Rules* rules) { rules->counts_from_request = false; }), "kOneOwner");
}

TEST(OwnershipModelTest, FindsTwoOwnersWhenAWokenDaemonDoesNotAsk) {
  EXPECT_EQ(Found([](Rules* rules) { rules->asks_what_it_owns = false; }), "kOneOwner");
}

TEST(OwnershipModelTest, FindsTwoOwnersWhenAHandOverTakesEffectLate) {
  EXPECT_EQ(Found([](Rules* rules) {
              *rules = OfThreeTicks();
              rules->has_hand_over = true;
              rules->voids_late_hand_over = false;
            }),
            "kOneOwner");
}

TEST(OwnershipModelTest, FindsTwoOwnersWhenAGiverGoesOn) {
  EXPECT_EQ(Found([](Rules* rules) {
              rules->has_hand_over = true;
              rules->stops_before_hand_over = false;
            }),
            "kOneOwner");
}

TEST(OwnershipModelTest, FindsAStaleWriteWithoutTokenChecks) {
  EXPECT_EQ(Found([](Rules* rules) {
              rules->has_writes = true;
              rules->has_late_requests = false;
              rules->checks_tokens = false;
            }),
            "kNewerStays");
}

TEST(OwnershipModelTest, FindsThatALongLeaseLeavesAJobAlone) {
  Rules rules;
  rules.daemons = 1;
  Model model(rules);
  ASSERT_EQ(model.Explore(), "");
  EXPECT_EQ(model.ExploreDeaths(), "kSuccessor") << "nobody is left";
}

}  // namespace
}  // namespace rollcall

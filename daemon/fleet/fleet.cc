// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/fleet.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/durations.h"

namespace rollcall {
namespace {

constexpr int64_t kGiveWayEveryNs = kSecond;      // a look for daemons that reach the database
constexpr size_t kMostYielded = 50;               // jobs in one look
constexpr int64_t kAlertsWithinNs = 8 * kSecond;  // of a job that leaves
constexpr int64_t kShareAgainNs = 60 * kSecond;   // after a hand-over that was given up

}  // namespace

Fleet::Fleet(FleetOptions options)
    : Fleet(options, FleetStore::Make(options.database), EarlierOwners::FromDatabase(options)) {}

Fleet::Fleet(FleetOptions options, std::unique_ptr<FleetStore> store, EarlierOwners::Load load)
    : options_(std::move(options)),
      alone_file_(options_.alone_file),
      members_(options_, alone_file_.is_alone()),
      claims_(options_, &members_),
      store_(std::move(store)),
      earlier_owners_(std::move(load)) {}

Fleet::~Fleet() { Stop(); }

void Fleet::Prepare(const std::string& address, const std::string& page, JobHolder* holder) {
  members_.SetAddress(address, page);
  holder_ = holder;
}

void Fleet::Start(const std::string& address, const std::string& page, JobHolder* holder) {
  Prepare(address, page, holder);
  thread_ = std::thread([this] { Run(); });
}

void Fleet::Stop() {
  if (!thread_.joinable()) return;
  stop_.Stop();
  thread_.join();
}

void Fleet::Run() {
  do {
    Step();
  } while (!stop_.SleepFor(options_.step_ns));
  members_.EndLease();
  claims_.EraseAll();
  const absl::Status left = store_->Leave(members_.row());
  if (!left.ok()) {
    spdlog::warn("cannot give up the lease, so the other daemons take over in {} s: {}",
                 options_.lease_ns / kSecond, std::string(left.message()));
  }
}

void Fleet::Step() {
  if (IsDue(due_.renew)) Renew();
  GiveWay();
  Claim();
  AdoptClaimed();
  FinishLeaving();
  if (IsDue(due_.want)) {
    due_.want = options_.now_ns() + std::min(kSecond, options_.want_after_ns);
    const std::vector<JobId> wanted = claims_.ToWant();
    if (!wanted.empty() && members_.HasDatabase()) {
      NoteAway(store_->Want(members_.row(), wanted));
    }
  }
  if (IsDue(due_.owners)) LookAtOwners();
  if (IsDue(due_.share)) {
    due_.share = options_.now_ns() + options_.share_every_ns;
    ReleaseUnused();
    if (holder_->HasBacklog()) return;
    for (const JobId& id : claims_.ToHandOver(members_.Sharers())) BeginLeaving(id, "");
  }
}

void Fleet::Renew() {
  const int64_t asked_ns = options_.now_ns();
  auto rows = store_->Renew(members_.row(), options_.lease_ns);
  const absl::StatusOr<std::map<JobId, int64_t>> mine =
      rows.ok() ? store_->Owned(members_.row()) : rows.status();
  members_.SetCutOff(!mine.ok());
  if (!mine.ok()) {
    due_.renew = options_.now_ns() + options_.try_again_ns;
    return NoteAway(mine.status());
  }
  due_.renew = asked_ns + options_.renew_every_ns;
  // Before the lease counts: another daemon may have taken jobs while this one stood still.
  JobClaims::Reports waiting;  // of agents that came before the first answer of the database
  const std::vector<JobId> lost = claims_.Compare(*mine, &waiting);
  Answer("", waiting);
  for (const JobId& id : lost) Lose(id);
  if (due_.claim == 0 && (has_loaded_ || !claims_.HasUnloaded())) NoteBack();
  members_.Renewed(asked_ns, *std::move(rows));
  alone_file_.Save(members_.IsAlone());
}

// The database does not answer, or takes nothing: a full disk is known by the first claim.
void Fleet::NoteAway(const absl::Status& status) {
  if (status.ok()) return;
  const std::string problem(status.message());
  if (problem != problem_) {
    spdlog::error("cannot read job ownership from the database: {}", problem);
  }
  problem_ = problem;
  members_.SetAway();
}

void Fleet::NoteBack() {
  if (!problem_.empty())
    spdlog::info("agreed again with the other daemons on which daemon has which job");
  problem_.clear();
  members_.SetBack();
}

void Fleet::Answer(const std::string& owner, const JobClaims::Reports& waiting) {
  for (const JobReport& report : waiting) holder_->Tell(report, owner);
}

// The agents that report a job whose state changes: some may begin to report it just before.
std::vector<std::string> Fleet::AgentsAround(const JobId& id,
                                             const std::function<void()>& change) const {
  std::vector<std::string> agents = holder_->Agents(id);
  change();
  for (std::string& agent : holder_->Agents(id)) {
    if (std::find(agents.begin(), agents.end(), agent) == agents.end()) {
      agents.push_back(std::move(agent));
    }
  }
  return agents;
}

void Fleet::Lose(const JobId& id) {
  spdlog::info("job {} has moved to another daemon", ToText(id));
  holder_->Release(id, AgentsAround(id, [&] { claims_.Lose(id); }));
  claims_.AwaitWrites(id, holder_->Written());
}

// The database answers others, and not this daemon, which may not alert any more: the jobs go to
// them.
void Fleet::GiveWay() {
  if (!IsDue(due_.give_way)) return;
  std::vector<DaemonRow> heirs = members_.Heirs();
  if (heirs.empty()) return;
  due_.give_way = options_.now_ns() + kGiveWayEveryNs;
  heirs = holder_->WithDatabase(heirs);
  if (heirs.empty()) return;
  for (const auto& [id, is_owned] : claims_.OwnedOrSought()) {
    const DaemonRow& to = PreferredOf(heirs, id);
    JobClaims::Reports waiting;
    const std::vector<std::string> agents =
        AgentsAround(id, [&, job = id] { waiting = claims_.Give(job, to.address); });
    Answer(to.address, waiting);
    if (!is_owned) continue;
    spdlog::warn("this daemon cannot reach the database but daemon {} can: handing job {} over",
                 to.name, ToText(id));
    holder_->Release(id, agents);
    claims_.AwaitWrites(id, holder_->Written());
  }
}

void Fleet::Claim() {
  if (!IsDue(due_.claim)) return TakeWithoutDatabase();  // a moment ago the database took nothing
  const std::vector<JobId> wanted = claims_.ToClaim();
  if (wanted.empty()) {
    due_.claim = 0;
    return TakeWithoutDatabase();
  }
  const auto owners = store_->Claim(members_.row(), wanted);
  due_.claim = owners.ok() ? 0 : options_.now_ns() + options_.try_again_ns;
  if (!owners.ok()) return NoteAway(owners.status());
  const JobClaims::Claimed claimed = claims_.TakeAnswer(*owners);
  for (const auto& [owner, waiting] : claimed.answered) Answer(owner, waiting);
  for (const JobId& id : claimed.lost) Lose(id);
  // A daemon that was alone has written.
  for (const JobId& id : claimed.proven) claims_.AwaitWrites(id, holder_->Written());
}

void Fleet::TakeWithoutDatabase() {
  const bool is_alone = members_.IsAlone();
  for (const auto& [id, waiting] : claims_.TakeWithoutDatabase()) {
    if (!is_alone) holder_->TakeUnknown(id);
    Answer("", waiting);
  }
}

void Fleet::AdoptClaimed() {
  bool is_late = false;
  const std::vector<JobId> loadable = claims_.ToLoad(&is_late);
  if (is_late) {
    has_loaded_ = false;
    NoteAway(absl::UnavailableError("what this daemon has to write does not reach the database"));
  }
  for (const JobId& id : loadable) {
    bool is_lost = false;
    auto earlier = earlier_owners_.Read(id, &is_lost);
    if (absl::IsDataLoss(earlier.status())) continue;  // until it is lost, the other jobs go on
    if (is_lost) holder_->TakeUnknown(id);
    has_loaded_ = earlier.ok() && !is_late;
    if (!earlier.ok()) return NoteAway(earlier.status());
    holder_->Adopt(id, *std::move(earlier));
    const JobClaims::Reports waiting = claims_.SetLoaded(id);
    holder_->Prove(id);
    Answer("", waiting);
    if (IsDue(due_.renew)) return;
  }
}

// Jobs that other daemons want, because the agents reach them only, go there.
void Fleet::LookAtOwners() {
  due_.owners = options_.now_ns() + options_.owners_every_ns;
  if (!members_.HasDatabase()) return;
  auto owners = store_->Owners();
  if (owners.ok()) members_.SetOwners(*std::move(owners));
  if (holder_->HasBacklog()) return;
  const auto wanted = store_->Wanted(members_.row());
  if (!wanted.ok()) return;
  size_t begun = 0;
  for (const auto& [id, by] : *wanted) {
    if (begun >= kMostYielded) break;
    if (holder_->IsReached(id)) continue;
    ++begun;
    spdlog::warn("agents of job {} cannot reach this daemon but reach {}: handing the job over",
                 ToText(id), by);
    BeginLeaving(id, by);
  }
}

// Jobs that ended long ago.
void Fleet::ReleaseUnused() {
  claims_.ForgetOthers();
  std::vector<JobId> released;
  // A job of which nothing has come yet since its claim looks the same: it must do so twice.
  auto before = std::exchange(unused_, {});
  for (const JobId& id : claims_.Owned()) {
    if (holder_->Has(id)) continue;
    const auto at = before.find(id);
    unused_[id] = at == before.end() ? holder_->Written() : std::move(at->second);
    if (at != before.end() && unused_[id]()) released.push_back(id);
  }
  if (released.empty() || !store_->Release(members_.row(), released).ok()) return;
  for (const JobId& id : released) {
    claims_.Erase(id);
    // It may have come back at this moment.
    if (holder_->Has(id)) holder_->Release(id, holder_->Agents(id));
  }
}

void Fleet::BeginLeaving(const JobId& id, const std::string& to) {
  bool has_begun = false;
  std::vector<std::string> agents =
      AgentsAround(id, [&] { has_begun = claims_.BeginLeaving(id, to); });
  if (!has_begun) return;
  claims_.SetAgents(id, std::move(agents));
  claims_.AwaitWrites(id, holder_->Written());
}

void Fleet::FinishLeaving() {
  for (const JobClaims::Leaving& job : claims_.AllLeaving()) {
    if (!Finish(job)) return;
  }
}

// If false, the others must wait, as the database does not answer, or the lease must be renewed.
bool Fleet::Finish(const JobClaims::Leaving& leaving) {
  const JobId& id = leaving.job;
  const std::optional<DaemonRow> to = members_.NextFor(id, leaving.to);
  if (!to.has_value()) return true;
  const int64_t age_ns = options_.now_ns() - leaving.since_ns;
  const bool is_written = !leaving.written || leaving.written();
  const bool gives_up =
      (!is_written || !members_.HasDatabase()) && age_ns >= options_.writes_within_ns;
  if (gives_up) due_.share = options_.now_ns() + kShareAgainNs;
  const bool waits = !is_written || (holder_->IsAlerting(id) && age_ns < kAlertsWithinNs);
  if (!gives_up && waits) return true;
  // The daemon that should get the job has gone, or the database is too slow.
  if (gives_up || to->address == members_.row().address) {
    claims_.Stay(id);
    holder_->Release(id, leaving.agents);
    return true;
  }
  const absl::Status given = store_->HandOver(members_.row(), id, leaving.token, *to);
  if (!given.ok()) return !absl::IsUnavailable(given);  // Renew() finds out whose it is
  spdlog::info("handed job {} to daemon {}, which now shares the load", ToText(id), to->name);
  Answer(to->address, claims_.Give(id, to->address));
  holder_->Release(id, leaving.agents);
  return !IsDue(due_.renew);
}

bool Fleet::Seek(const JobReport& report) {
  if (!claims_.HasRoomFor(report.job)) return false;
  const std::optional<std::string> owner = claims_.Seek(report);
  if (owner.has_value()) holder_->Tell(report, *owner);
  return true;
}

}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/fleet.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "base/clean_text.h"
#include "base/digest/digest.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "base/read_file.h"
#include "base/rendezvous.h"
#include "daemon/history/postgres_history.h"

namespace rollcall {
namespace {

constexpr char kAlone[] = "alone";
constexpr int64_t kStepNs = 100'000'000;
constexpr int64_t kGiveWayEveryNs = kSecond;  // a look for daemons that reach the database
// a job that came from a daemon that agents do not reach
constexpr int64_t kStaysNs = 3600 * kSecond;
constexpr size_t kMostAtOnce = 1000;  // jobs in one statement
constexpr int kMostReads = 10;        // of one job, at most one in each step
// in one step, so that the lease is renewed in time
constexpr size_t kMostLoads = 50;
constexpr size_t kMostWaiting = 100'000;      // agents of one job
constexpr std::chrono::seconds kMostWait{3};  // for the database: meanwhile no lease is renewed

DaemonRow NewRow(const std::string& name) {
  DaemonRow row;
  row.name = name;
  row.incarnation = absl::BytesToHexString(RandomBytes(16).value_or(""));
  row.secret = absl::BytesToHexString(RandomBytes(32).value_or(""));
  return row;
}

}  // namespace

Fleet::Fleet(FleetOptions options)
    : Fleet(options, FleetStore::Make(options.database),
            [this](const JobId& job) { return LoadFromDatabase(job); }) {}

Fleet::Fleet(FleetOptions options, std::unique_ptr<FleetStore> store, Load load)
    : options_(std::move(options)),
      self_(NewRow(options_.database.daemon)),
      store_(std::move(store)),
      load_(std::move(load)),
      lease_(options_.lease_ns, options_.margin_ns),
      is_alone_(ReadAlone()) {
  is_alone_on_disk_ = is_alone_;
}

Fleet::~Fleet() { Stop(); }

void Fleet::Prepare(const std::string& address, const std::string& page, Hooks hooks) {
  self_.address = address;
  self_.page = page;
  hooks_ = std::move(hooks);
}

void Fleet::Start(const std::string& address, const std::string& page, Hooks hooks) {
  Prepare(address, page, std::move(hooks));
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
  } while (!stop_.SleepFor(kStepNs));
  {
    const MutexLock lock(mutex_);
    lease_.Ended();
    jobs_.clear();
  }
  const absl::Status left = store_->Leave(self_);
  if (!left.ok()) {
    spdlog::warn("cannot give up the lease, so the other daemons take over in {} s: {}",
                 options_.lease_ns / kSecond, std::string(left.message()));
  }
}

void Fleet::Step() {
  if (BootNs() >= renew_ns_) Renew();
  GiveWay();
  Claim();
  AdoptClaimed();
  FinishHandOvers();
  if (BootNs() >= want_ns_) WantUnreached();
  if (BootNs() >= owners_ns_) {
    RefreshOwners();
    YieldUnreached();
  }
  if (BootNs() >= share_ns_) {
    share_ns_ = BootNs() + options_.share_every_ns;
    ReleaseUnused();
    BeginHandOvers();
  }
}

void Fleet::Renew() {
  const int64_t asked_ns = BootNs();
  auto rows = store_->Renew(self_, options_.lease_ns);
  std::map<JobId, int64_t> mine;
  absl::Status status = rows.status();
  if (status.ok()) {
    auto owned = store_->Owned(self_);
    status = owned.status();
    if (status.ok()) mine = *std::move(owned);
  }
  if (!status.ok()) {
    renew_ns_ = BootNs() + options_.try_again_ns;
    SetCutOff(true);
    return NoteAway(status);
  }
  renew_ns_ = asked_ns + options_.renew_every_ns;
  SetCutOff(false);
  // Before the lease counts: another daemon may have taken jobs while this one stood still.
  Compare(mine);
  if (claim_ns_ == 0 && (has_loaded_ || !HasUnloaded())) NoteBack();
  const bool is_alone = rows->size() == 1;
  if (is_alone != is_alone_on_disk_) WriteAlone(is_alone);
  const MutexLock lock(mutex_);
  lease_.Renewed(asked_ns);
  daemons_ = *std::move(rows);
  is_alone_ = is_alone;
  std::map<std::string, int64_t> seen;
  for (const DaemonRow& daemon : daemons_) {
    const auto at = seen_.find(daemon.incarnation);
    seen[daemon.incarnation] = at == seen_.end() ? asked_ns : at->second;
  }
  seen_ = std::move(seen);
}

void Fleet::SetCutOff(bool is_cut_off) {
  const MutexLock lock(mutex_);
  is_cut_off_ = is_cut_off;
}

// The database does not answer, or takes nothing: a full disk is known by the first claim.
void Fleet::NoteAway(const absl::Status& status) {
  const std::string problem(status.message());
  if (problem != problem_) {
    spdlog::error("cannot read job ownership from the database: {}", problem);
  }
  problem_ = problem;
  const MutexLock lock(mutex_);
  if (away_since_ns_ == 0) away_since_ns_ = BootNs();
}

void Fleet::NoteBack() {
  if (!problem_.empty())
    spdlog::info("agreed again with the other daemons on which daemon has which job");
  problem_.clear();
  const MutexLock lock(mutex_);
  away_since_ns_ = 0;
}

// For a start while the database does not answer. Without the file this is the first start.
bool Fleet::ReadAlone() const {
  const std::string text = ReadFile(options_.alone_file).value_or("");
  const absl::string_view word = absl::StripAsciiWhitespace(text);
  return word.empty() || word == kAlone;
}

void Fleet::WriteAlone(bool is_alone) {
  if (options_.alone_file.empty()) return;
  const absl::Status written = WriteAtomically(
      options_.alone_file, absl::StrCat(is_alone ? kAlone : "one of several", "\n"), 0600);
  if (written.ok()) is_alone_on_disk_ = is_alone;
}

// Drops the jobs that another daemon has taken.
void Fleet::Compare(const std::map<JobId, int64_t>& mine) {
  std::vector<JobId> lost;
  std::vector<Report> waiting;  // agents that came before the first answer of the database
  {
    const MutexLock lock(mutex_);
    for (auto& [id, job] : jobs_) {
      const bool is_held = job.state == State::kOwned || job.state == State::kClaimed ||
                           job.state == State::kLeaving;
      if (!is_held) continue;
      const auto at = mine.find(id);
      if (at == mine.end() || at->second != job.token) lost.push_back(id);
    }
    // The jobs of this daemon before it started again: the history brings what it knew.
    for (const auto& [id, token] : mine) {
      if (has_compared_) break;
      Job& job = jobs_[id];
      job.token = token;
      if (job.state == State::kProvisional) {  // what it found out waits to be proven
        job.state = State::kClaimed;
        job.is_judged = true;
        job.since_ns = BootNs();
        continue;
      }
      job.state = State::kOwned;
      for (auto& [agent, report] : job.waiting) waiting.push_back(std::move(report));
      job.waiting.clear();
    }
    has_compared_ = true;
  }
  Answer("", waiting);
  for (const JobId& id : lost) Lose(id);
}

void Fleet::Lose(const JobId& id) {
  spdlog::info("job {} has moved to another daemon", ToText(id));
  std::vector<std::string> agents = hooks_.agents(id);
  {
    const MutexLock lock(mutex_);
    Job& job = jobs_[id];
    std::map<std::string, Report> waiting = std::move(job.waiting);
    SetOthers("", &job);
    if (!waiting.empty()) job.state = State::kSought;
    job.waiting = std::move(waiting);
  }
  AddAgents(id, &agents);
  hooks_.release(id, agents);
  AwaitWrites(id);
}

// The job keeps its token, so that the database refuses what this daemon still writes about it.
void Fleet::SetOthers(const std::string& owner, Job* job) {
  const int64_t token = job->token;
  std::function<bool()> written = std::move(job->written);
  *job = Job();
  job->token = token;
  job->written = std::move(written);
  job->state = State::kOthers;
  job->owner = owner;
  job->asked_ns = BootNs();
}

// Of a job that this daemon had. Without the mutex: the hook asks for the token of the job.
void Fleet::AwaitWrites(const JobId& id) {
  std::function<bool()> written = hooks_.written();
  const MutexLock lock(mutex_);
  jobs_[id].written = std::move(written);
}

// After the job's state has changed: some may have begun to report it just before.
void Fleet::AddAgents(const JobId& id, std::vector<std::string>* agents) const {
  for (std::string& agent : hooks_.agents(id)) {
    if (std::find(agents->begin(), agents->end(), agent) == agents->end()) {
      agents->push_back(std::move(agent));
    }
  }
}

bool Fleet::IsAway() const {
  return away_since_ns_ != 0 && BootNs() - away_since_ns_ >= options_.patience_ns;
}

// The database answers others, and not this daemon, which may not alert any more: the jobs go to
// them.
void Fleet::GiveWay() {
  const int64_t now_ns = BootNs();
  std::vector<DaemonRow> others;
  {
    const MutexLock lock(mutex_);
    const bool is_over = now_ns >= lease_.HeldUntil() + options_.margin_ns;  // there, too
    if (away_since_ns_ == 0 || is_alone_ || !is_over || now_ns < give_way_ns_) return;
    std::copy_if(daemons_.begin(), daemons_.end(), std::back_inserter(others),
                 [&](const DaemonRow& daemon) { return daemon.name != self_.name; });
  }
  give_way_ns_ = now_ns + kGiveWayEveryNs;
  if (!others.empty()) others = hooks_.with_database(others);
  if (others.empty()) return;
  std::vector<JobId> given;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, job] : jobs_) {
      if (job.state != State::kOthers) given.push_back(id);
    }
  }
  for (const JobId& id : given) GiveTo(others, id);
}

void Fleet::GiveTo(const std::vector<DaemonRow>& others, const JobId& id) {
  std::vector<std::string> addresses;
  for (const DaemonRow& daemon : others) addresses.push_back(daemon.address);
  const DaemonRow& to = others[PreferredDaemon(addresses, id.tenant, id.job)];
  std::vector<std::string> agents = hooks_.agents(id);
  std::vector<Report> waiting;
  bool was_sought = false;
  {
    const MutexLock lock(mutex_);
    Job& job = jobs_[id];
    was_sought = job.state == State::kSought;
    for (auto& [agent, report] : job.waiting) waiting.push_back(std::move(report));
    SetOthers(to.address, &job);
  }
  Answer(to.address, waiting);
  if (was_sought) return;
  spdlog::warn("this daemon cannot reach the database but daemon {} can: handing job {} over",
               to.name, ToText(id));
  AddAgents(id, &agents);
  hooks_.release(id, agents);
  AwaitWrites(id);
}

void Fleet::Claim() {
  if (BootNs() < claim_ns_) return TakeProvisional();  // a moment ago the database took nothing
  std::vector<JobId> wanted;
  {
    const MutexLock lock(mutex_);
    const bool holds_lease = lease_.IsHeld(BootNs());
    for (const auto& [id, job] : jobs_) {
      const bool is_wanted =
          (job.state == State::kSought && !job.waiting.empty()) || job.state == State::kProvisional;
      if (holds_lease && is_wanted && wanted.size() < kMostAtOnce) wanted.push_back(id);
    }
  }
  if (wanted.empty()) {
    claim_ns_ = 0;
    return TakeProvisional();
  }
  const auto rows = store_->Claim(self_, wanted);
  if (!rows.ok()) {
    NoteAway(rows.status());
    claim_ns_ = BootNs() + options_.try_again_ns;
    return;
  }
  claim_ns_ = 0;
  std::vector<JobId> lost, proven;
  for (const auto& [id, row] : *rows) {
    std::vector<Report> waiting;
    {
      const MutexLock lock(mutex_);
      Job& job = jobs_[id];
      if (job.state == State::kProvisional && !row.is_mine) {
        lost.push_back(id);
        continue;
      }
      if (row.is_mine) {
        job.is_judged = job.state == State::kProvisional;
        if (job.is_judged) proven.push_back(id);
        job.state = State::kClaimed;
        job.since_ns = BootNs();
        if (row.is_wanted) job.stays_until_ns = job.since_ns + kStaysNs;
        job.token = row.token;
        continue;
      }
      job.state = State::kOthers;
      job.owner = row.address;
      job.asked_ns = BootNs();
      for (auto& [agent, report] : job.waiting) waiting.push_back(std::move(report));
      job.waiting.clear();
    }
    Answer(row.address, waiting);
  }
  for (const JobId& id : lost) Lose(id);
  for (const JobId& id : proven) AwaitWrites(id);  // a daemon that was alone has written
}

// Whether the daemon has jobs about which it does not know what an earlier owner found out.
bool Fleet::HasUnloaded() const {
  const MutexLock lock(mutex_);
  return std::any_of(jobs_.begin(), jobs_.end(), [](const auto& entry) {
    const State state = entry.second.state;
    return state == State::kClaimed || state == State::kProvisional;
  });
}

// Somebody must look at these jobs, although nobody can say whose they are.
void Fleet::TakeProvisional() {
  std::map<JobId, std::vector<Report>> taken;
  bool is_alone = false;
  {
    const MutexLock lock(mutex_);
    if (!IsAway()) return;
    is_alone = is_alone_;
    for (auto& [id, job] : jobs_) {
      const bool is_sought = job.state == State::kSought && !job.waiting.empty();
      if (!is_sought && job.state != State::kClaimed) continue;
      job.state = State::kProvisional;
      taken[id];
      for (auto& [agent, report] : job.waiting) taken[id].push_back(std::move(report));
      job.waiting.clear();
    }
  }
  for (const auto& [id, waiting] : taken) {
    if (!is_alone) hooks_.take_unknown(id);
    Answer("", waiting);
  }
}

// The claimed jobs about which the database knows all that this daemon found out when it had them
// before.
std::vector<JobId> Fleet::Loadable(bool* is_late) {
  struct Claimed {
    std::function<bool()> written;
    int64_t since_ns;
  };
  std::map<JobId, Claimed> claimed;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, job] : jobs_) {
      if (job.state == State::kClaimed) claimed[id] = {job.written, job.since_ns};
    }
  }
  std::vector<JobId> result;
  for (const auto& [id, job] : claimed) {
    if (result.size() >= kMostLoads) break;
    if (!job.written || job.written()) {
      result.push_back(id);
    } else {
      *is_late = *is_late || BootNs() - job.since_ns >= options_.writes_within_ns;
    }
  }
  return result;
}

void Fleet::AdoptClaimed() {
  bool is_late = false;
  const std::vector<JobId> loadable = Loadable(&is_late);
  if (is_late) {
    has_loaded_ = false;
    NoteAway(absl::UnavailableError("what this daemon has to write does not reach the database"));
  }
  for (const JobId& id : loadable) {
    auto earlier = load_(id);
    if (absl::IsDataLoss(earlier.status())) {
      if (!GivesUpReading(id, earlier.status())) continue;
      hooks_.take_unknown(id);
      earlier = Continuation();
    }
    has_loaded_ = earlier.ok() && !is_late;
    if (!earlier.ok()) return NoteAway(earlier.status());
    unreadable_.erase(id);
    hooks_.adopt(id, *std::move(earlier));
    std::vector<Report> waiting;
    {
      const MutexLock lock(mutex_);
      Job& job = jobs_[id];
      job.state = State::kOwned;
      job.written = nullptr;
      for (auto& [agent, report] : job.waiting) waiting.push_back(std::move(report));
      job.waiting.clear();
    }
    hooks_.prove(id);
    Answer("", waiting);
    if (BootNs() >= renew_ns_) return;
  }
}

// What the database has of this job is unusable. The other jobs must not wait for it, and this one
// not for ever.
bool Fleet::GivesUpReading(const JobId& job, const absl::Status& status) {
  const int tries = ++unreadable_[job];
  if (tries == 1 || tries == kMostReads) {
    spdlog::error("cannot read job {} from the database: {}{}", CleanText(job.job),
                  std::string(status.message()),
                  tries == 1 ? "; trying again" : "; going on without it");
  }
  return tries >= kMostReads;
}

absl::StatusOr<Continuation> Fleet::LoadFromDatabase(const JobId& job) {
  if (history_ == nullptr) {
    PostgresOptions database = options_.database;
    database.times.connect = std::min(database.times.connect, kMostWait);
    database.times.answer = std::min(database.times.answer, kMostWait);
    auto opened = PostgresHistory::Open(database, options_.limits);
    if (!opened.ok()) return opened.status();
    history_ = *std::move(opened);
  }
  auto loaded = history_->LoadJob(job);
  if (loaded.ok()) return loaded;
  history_ = nullptr;
  // An error of another kind passes: a slow database has the data, and the job must wait for them.
  if (absl::IsInvalidArgument(loaded.status()))
    return absl::DataLossError(loaded.status().message());
  return loaded.status();
}

void Fleet::Answer(const std::string& owner, const std::vector<Report>& waiting) {
  for (const Report& report : waiting) hooks_.tell(report, owner);
}

void Fleet::RefreshOwners() {
  owners_ns_ = BootNs() + options_.owners_every_ns;
  {
    const MutexLock lock(mutex_);
    if (away_since_ns_ != 0) return;
  }
  auto owners = store_->Owners();
  if (!owners.ok()) return;
  const MutexLock lock(mutex_);
  owners_ = *std::move(owners);
}

// Jobs that ended long ago.
void Fleet::ReleaseUnused() {
  ForgetOthers();
  std::vector<JobId> owned, released;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, job] : jobs_) {
      if (job.state == State::kOwned) owned.push_back(id);
    }
  }
  // A job of which nothing has come yet since its claim looks the same: it must do so twice.
  auto before = std::exchange(unused_, {});
  for (const JobId& id : owned) {
    if (hooks_.has(id)) continue;
    const auto at = before.find(id);
    unused_[id] = at == before.end() ? hooks_.written() : std::move(at->second);
    if (at != before.end() && unused_[id]()) released.push_back(id);
  }
  if (released.empty() || !store_->Release(self_, released).ok()) return;
  for (const JobId& id : released) {
    {
      const MutexLock lock(mutex_);
      jobs_.erase(id);
    }
    // It may have come back at this moment.
    if (hooks_.has(id)) hooks_.release(id, hooks_.agents(id));
  }
}

bool Fleet::IsForgotten(const Job& job) const {
  return job.state == State::kOthers && job.waiting.empty() &&
         BootNs() - job.asked_ns > options_.forget_others_ns;
}

// Jobs of other daemons that no agent asks for.
void Fleet::ForgetOthers() {
  std::map<JobId, std::function<bool()>> stale;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, job] : jobs_) {
      if (IsForgotten(job)) stale[id] = job.written;
    }
  }
  for (const auto& [id, written] : stale) {
    if (written && !written()) continue;
    const MutexLock lock(mutex_);
    const auto at = jobs_.find(id);
    if (at != jobs_.end() && IsForgotten(at->second)) jobs_.erase(at);
  }
}

bool Fleet::HasRoomFor(const JobId& job) const {
  const MutexLock lock(mutex_);
  return jobs_.size() < options_.most_jobs || jobs_.count(job) > 0;
}

void Fleet::Seek(const Report& report) {
  if (!HasRoomFor(report.job)) return hooks_.drop(Dropped::kJobs);
  std::string owner;
  {
    const MutexLock lock(mutex_);
    Job& job = jobs_[report.job];
    if (job.state == State::kOthers) NoteAsked(&job);
    const bool is_known = job.state == State::kOthers &&
                          BootNs() - job.asked_ns < options_.ask_again_ns && !job.owner.empty();
    if (is_known) {
      owner = job.owner;
    } else if (job.state != State::kOwned && job.state != State::kProvisional) {
      if (job.state == State::kOthers) job.state = State::kSought;
      if (job.waiting.size() < kMostWaiting) job.waiting[report.agent] = report;
      return;
    }
  }
  hooks_.tell(report, owner);
}

bool Fleet::Owns(const JobId& job) const {
  const MutexLock lock(mutex_);
  const auto at = jobs_.find(job);
  if (at == jobs_.end()) return false;
  const State state = at->second.state;
  return state == State::kOwned || state == State::kProvisional ||
         (state == State::kClaimed && at->second.is_judged);
}

bool Fleet::MayAlert(const JobId& job) const {
  const MutexLock lock(mutex_);
  const auto at = jobs_.find(job);
  if (at == jobs_.end()) return false;
  const State state = at->second.state;
  const bool may_alone = is_alone_ && (state == State::kOwned || state == State::kProvisional);
  if (may_alone && is_cut_off_) return true;
  return (may_alone || state == State::kOwned) && lease_.IsHeld(BootNs());
}

bool Fleet::IsUnproven(const JobId& job) const {
  const MutexLock lock(mutex_);
  const auto at = jobs_.find(job);
  if (at == jobs_.end() || is_alone_) return false;
  return at->second.state == State::kProvisional || at->second.state == State::kClaimed;
}

int64_t Fleet::TokenOf(const JobId& job) const {
  const MutexLock lock(mutex_);
  const auto at = jobs_.find(job);
  return at == jobs_.end() ? 0 : at->second.token;
}

std::vector<DaemonRow> Fleet::Daemons() const {
  const MutexLock lock(mutex_);
  return daemons_;
}

bool Fleet::HoldsLease() const {
  const MutexLock lock(mutex_);
  return lease_.IsHeld(BootNs());
}

FleetJobs Fleet::CountJobs() const {
  FleetJobs count;
  const MutexLock lock(mutex_);
  for (const auto& [id, job] : jobs_) {
    if (job.state == State::kOwned) ++count.owned;
    if (job.state == State::kProvisional || job.state == State::kClaimed) ++count.unproven;
    if (job.state == State::kLeaving) ++count.leaving;
    if (job.state == State::kSought) ++count.sought;
  }
  return count;
}

std::optional<DaemonRow> Fleet::OwnerOf(const std::string& tenant, const std::string& job) const {
  const MutexLock lock(mutex_);
  const auto found = std::find_if(owners_.begin(), owners_.end(), [&](const auto& entry) {
    return entry.first.job == job && (tenant.empty() || entry.first.tenant == tenant);
  });
  if (found == owners_.end()) return std::nullopt;
  const auto row = std::find_if(daemons_.begin(), daemons_.end(), [&](const DaemonRow& daemon) {
    return daemon.name == found->second.daemon;
  });
  if (row == daemons_.end()) return std::nullopt;
  return *row;
}

}  // namespace rollcall

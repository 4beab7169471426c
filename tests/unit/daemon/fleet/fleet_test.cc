// SPDX-License-Identifier: Apache-2.0
// Whose the jobs are, by what a store says that the test writes. tests/e2e/fleet/test_fleet.py has
// real ones.
#include "daemon/fleet/fleet.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "base/rendezvous.h"

namespace rollcall {
namespace {

constexpr char kHere[] = "here:1", kThere[] = "there:1";

// What the database says. The test keeps it.
struct Database {
  std::vector<DaemonRow> others;
  std::map<JobId, int64_t> mine;
  std::map<JobId, OwnerRow> theirs;
  absl::Status away;      // an error: it does not answer
  absl::Status takes_no;  // an error: it takes no claims
  int64_t next_token = 1;
  std::set<JobId> wanted_here;                // of other daemons
  std::map<JobId, std::string> wanted_there;  // of this one, by daemon
  bool is_wanted = false;                     // whatever this daemon claims
  int64_t now_ns = 0;                         // for the tests that move it
  int64_t request_ns = 0;                     // how long a request takes
  int64_t lease_there_ns = INT64_MAX;         // when the leases of the other daemons end

  void Pass() { now_ns += request_ns; }
};

class FakeStore : public FleetStore {
 public:
  explicit FakeStore(Database* database) : database_(database) {}

  absl::StatusOr<std::vector<DaemonRow>> Renew(const DaemonRow& self, int64_t) override {
    database_->Pass();
    if (!database_->away.ok()) return database_->away;
    std::vector<DaemonRow> rows = database_->others;
    rows.push_back(self);
    return rows;
  }
  absl::StatusOr<std::map<JobId, OwnerRow>> Claim(const DaemonRow&,
                                                  const std::vector<JobId>& jobs) override {
    database_->Pass();
    if (!database_->takes_no.ok()) return database_->takes_no;
    std::map<JobId, OwnerRow> owners;
    for (const JobId& job : jobs) {
      const auto theirs = database_->theirs.find(job);
      const bool lives = database_->now_ns < database_->lease_there_ns;
      if (theirs != database_->theirs.end() && lives) {
        owners[job] = theirs->second;
        continue;
      }
      const int64_t token = database_->mine.emplace(job, database_->next_token++).first->second;
      owners[job] = {"here", kHere, token, true, 1, database_->is_wanted};
    }
    return owners;
  }
  absl::StatusOr<std::map<JobId, int64_t>> Owned(const DaemonRow&) override {
    database_->Pass();
    return database_->mine;
  }
  absl::StatusOr<std::map<JobId, OwnerRow>> Owners() override {
    database_->Pass();
    return database_->theirs;
  }
  absl::Status HandOver(const DaemonRow&, const JobId& job, int64_t, const DaemonRow& to) override {
    database_->mine.erase(job);
    database_->theirs[job] = {to.name, to.address, database_->next_token++, false, 1};
    return absl::OkStatus();
  }
  absl::Status Want(const DaemonRow&, const std::vector<JobId>& jobs) override {
    database_->Pass();
    for (const JobId& job : jobs) database_->wanted_here.insert(job);
    return absl::OkStatus();
  }
  absl::StatusOr<std::map<JobId, std::string>> Wanted(const DaemonRow&) override {
    database_->Pass();
    return database_->wanted_there;
  }
  absl::Status Release(const DaemonRow&, const std::vector<JobId>& jobs) override {
    for (const JobId& job : jobs) database_->mine.erase(job);
    return absl::OkStatus();
  }
  absl::Status Leave(const DaemonRow&) override { return absl::OkStatus(); }

 private:
  Database* const database_;
};

class FleetTest : public testing::Test, public JobHolder {
 protected:
  // A daemon that looks at the database with each step.
  std::unique_ptr<Fleet> MakeFleet(int64_t patience_ns = 0, const std::string& alone_file = "") {
    FleetOptions options;
    options.alone_file = alone_file;
    options.most_jobs = 3;
    options.database.daemon = "here";
    if (is_lease_over_) options.lease_ns = options.margin_ns;
    options.renew_every_ns = 0;
    options.patience_ns = patience_ns;
    options.settled_after_ns = 0;
    options.ask_again_ns = ask_again_ns_;
    options.writes_within_ns = writes_within_ns_;
    options.forget_others_ns = forget_others_ns_;
    options.try_again_ns = try_again_ns_;
    options.share_every_ns = options.owners_every_ns = options.want_after_ns = 0;
    return Make(options);
  }
  std::unique_ptr<Fleet> Make(const FleetOptions& options) {
    auto fleet = std::make_unique<Fleet>(options, std::make_unique<FakeStore>(&database_),
                                         [this](const JobId& job) -> absl::StatusOr<Continuation> {
                                           database_.Pass();
                                           if (!load_.ok()) return load_;
                                           if (unreadable_.count(job.job) != 0) {
                                             return absl::DataLossError("no answer");
                                           }
                                           return Continuation();
                                         });
    asked_ = &fleet->claims();
    fleet->Prepare(kHere, "", this);
    return fleet;
  }

  void Adopt(const JobId& job, Continuation) override { Say(absl::StrCat("adopts ", job.job)); }
  void Prove(const JobId& job) override { Say(absl::StrCat("proves ", job.job)); }
  void TakeUnknown(const JobId& job) override { Say(absl::StrCat("numbers of ", job.job)); }
  void Release(const JobId& job, const std::vector<std::string>& agents) override {
    Say(absl::StrCat("releases ", job.job, " of ", agents.size()));
  }
  bool Has(const JobId&) const override { return has_; }
  std::vector<std::string> Agents(const JobId&) const override { return {"agent"}; }
  bool IsReached(const JobId&) const override { return is_reached_; }
  bool IsAlerting(const JobId&) const override { return false; }
  void Tell(const JobReport& report, const std::string& owner) override {
    Say(absl::StrCat("tells ", report.agent, ": ", owner.empty() ? "mine" : owner));
  }
  std::vector<DaemonRow> WithDatabase(const std::vector<DaemonRow>&) const override { return {}; }
  bool HasBacklog() const override { return false; }
  // Asks whose a job is, as the history does: the fleet must not hold its mutex meanwhile.
  std::function<bool()> Written() const override {
    asked_->TokenOf(kJob);
    return [this, asked = asked_] { return asked->TokenOf(kJob) >= 0 && is_written_; };
  }

  void Say(std::string what) { said_.push_back(std::move(what)); }
  std::vector<std::string> TakeSaid() { return std::exchange(said_, {}); }

  static JobReport ReportBy(const std::string& agent) { return {kJob, agent, true, "", kJob.job}; }
  void AddOther() { database_.others.push_back({"there", kThere, "", "i", "s", 1, 0}); }

  inline static const JobId kJob = {kDefaultTenant, "job"};
  Database database_;
  absl::Status load_;
  std::set<std::string> unreadable_;  // jobs
  int64_t ask_again_ns_ = 1'000'000'000;
  int64_t try_again_ns_ = 500'000'000;
  int64_t writes_within_ns_ = 3'000'000'000;
  int64_t forget_others_ns_ = 60'000'000'000;
  bool is_lease_over_ = false;  // as soon as it is renewed
  bool has_ = true;             // anything of the job
  bool is_reached_ = true;      // by agents of the job
  bool is_written_ = true;      // all that the daemon had to write
  std::vector<std::string> said_;
  const JobClaims* asked_ = nullptr;
};

using Said = std::vector<std::string>;

TEST_F(FleetTest, OwnsAJobOnceItKnowsWhatAnEarlierOwnerDid) {
  const auto fleet = MakeFleet(/*patience_ns=*/INT64_MAX);
  fleet->Step();
  fleet->Seek(ReportBy("a"));
  fleet->Seek(ReportBy("b"));
  EXPECT_FALSE(fleet->claims().Owns(kJob));
  load_ = absl::UnavailableError("away");
  fleet->Step();
  EXPECT_FALSE(fleet->claims().Owns(kJob));
  EXPECT_EQ(TakeSaid(), Said{});
  load_ = absl::OkStatus();
  fleet->Step();
  EXPECT_TRUE(fleet->claims().Owns(kJob));
  EXPECT_TRUE(fleet->claims().MayAlert(kJob));
  EXPECT_EQ(fleet->claims().TokenOf(kJob), 1);
  EXPECT_EQ(TakeSaid(), (Said{"adopts job", "proves job", "tells a: mine", "tells b: mine"}));
}

TEST_F(FleetTest, NamesTheOwnerOfAnotherDaemonsJob) {
  database_.theirs[kJob] = {"there", kThere, 7, false, 1};
  const auto fleet = MakeFleet();
  fleet->Step();
  fleet->Seek(ReportBy("a"));
  fleet->Step();
  EXPECT_FALSE(fleet->claims().Owns(kJob));
  EXPECT_FALSE(fleet->claims().MayAlert(kJob));
  EXPECT_EQ(TakeSaid(), (Said{"tells a: there:1"}));
  fleet->Seek(ReportBy("b"));  // known by now
  EXPECT_EQ(TakeSaid(), (Said{"tells b: there:1"}));
}

TEST_F(FleetTest, RefusesFurtherJobsBeyondItsLimit) {
  const auto fleet = MakeFleet();
  for (const char* name : {"one", "two", "three"}) {
    EXPECT_TRUE(fleet->Seek({{kDefaultTenant, name}, "a", true, "", name}));
  }
  EXPECT_FALSE(fleet->Seek({{kDefaultTenant, "four"}, "a", true, "", "four"}));
  EXPECT_TRUE(fleet->Seek({{kDefaultTenant, "one"}, "a", true, "", "one"}));
  fleet->Step();
  EXPECT_EQ(database_.mine.count({kDefaultTenant, "three"}), 1u);
  EXPECT_EQ(database_.mine.size(), 3u);
}

// A restarted daemon: its agents are back before the database has answered.
TEST_F(FleetTest, AnswersAgentsThatReportItsOldJobsBeforeItKnowsThem) {
  database_.mine[kJob] = 5;
  const auto fleet = MakeFleet();
  fleet->Seek(ReportBy("a"));
  fleet->Step();
  EXPECT_TRUE(fleet->claims().Owns(kJob));
  EXPECT_EQ(fleet->claims().TokenOf(kJob), 5);
  EXPECT_EQ(TakeSaid(), (Said{"tells a: mine"}));
}

TEST_F(FleetTest, DropsAJobThatAnotherDaemonHasTakenAndKeepsItsOldToken) {
  database_.mine[kJob] = 5;
  const auto fleet = MakeFleet();
  fleet->Step();
  database_.mine.clear();
  database_.theirs[kJob] = {"there", kThere, 6, false, 1};
  fleet->Step();
  EXPECT_FALSE(fleet->claims().Owns(kJob));
  EXPECT_FALSE(fleet->claims().MayAlert(kJob));
  EXPECT_EQ(fleet->claims().TokenOf(kJob), 5) << "so that the database refuses its writes";
  EXPECT_EQ(TakeSaid(), (Said{"releases job of 1"}));
}

TEST_F(FleetTest, DoesNotAlertForItsJobsOnceItsLeaseIsOver) {
  is_lease_over_ = true;
  database_.mine[kJob] = 5;
  const auto fleet = MakeFleet();
  fleet->Step();
  EXPECT_TRUE(fleet->claims().Owns(kJob));
  EXPECT_FALSE(fleet->members().HoldsLease());
  EXPECT_FALSE(fleet->claims().MayAlert(kJob));
}

TEST_F(FleetTest, AloneItTakesJobsAndAlertsWhileTheDatabaseIsAway) {
  const auto fleet = MakeFleet();
  fleet->Step();
  database_.away = absl::UnavailableError("away");
  fleet->Seek(ReportBy("a"));
  database_.takes_no = database_.away;
  fleet->Step();
  fleet->Step();
  EXPECT_TRUE(fleet->claims().Owns(kJob));
  EXPECT_TRUE(fleet->claims().MayAlert(kJob));
  EXPECT_EQ(TakeSaid(), (Said{"tells a: mine"}));
}

TEST_F(FleetTest, TakesJobsWithoutAlertsWhileTheDatabaseIsAway) {
  AddOther();
  const auto fleet = MakeFleet();
  fleet->Step();
  database_.away = database_.takes_no = absl::UnavailableError("away");
  fleet->Seek(ReportBy("a"));
  fleet->Step();
  fleet->Step();
  EXPECT_TRUE(fleet->claims().Owns(kJob));
  EXPECT_FALSE(fleet->claims().MayAlert(kJob));
  EXPECT_EQ(TakeSaid(), (Said{"numbers of job", "tells a: mine"}));
}

TEST_F(FleetTest, GoesOnJudgingAJobThatItClaimsAfterwards) {
  const auto fleet = MakeFleet();
  fleet->Step();
  database_.away = database_.takes_no = absl::UnavailableError("away");
  fleet->Seek(ReportBy("a"));
  fleet->Step();
  fleet->Step();
  load_ = absl::UnavailableError("not yet");
  database_.away = database_.takes_no = absl::OkStatus();
  for (int i = 0; i < 3; ++i) {
    fleet->Step();
    EXPECT_TRUE(fleet->claims().Owns(kJob)) << i;
  }
}

// A job that prefers this daemon (0), or the other one (1).
JobId JobFor(size_t daemon) {
  for (int i = 0;; ++i) {
    const JobId job = {kDefaultTenant, absl::StrCat("job-", i)};
    if (PreferredDaemon({kHere, kThere}, job.tenant, job.job) == daemon) return job;
  }
}

TEST_F(FleetTest, GivesADaemonThatComesItsShareOnly) {
  const JobId own = JobFor(0), theirs = JobFor(1);
  database_.mine = {{own, 5}, {theirs, 6}};
  const auto fleet = MakeFleet();
  fleet->Step();
  AddOther();
  fleet->Step();
  EXPECT_FALSE(fleet->claims().Owns(theirs));
  EXPECT_EQ(fleet->claims().TokenOf(theirs), 6)
      << "what it still writes counts until the other one has the job";
  fleet->Seek({theirs, "late", true, "", theirs.job});
  EXPECT_EQ(TakeSaid(), Said{});
  fleet->Step();
  EXPECT_EQ(database_.theirs.count(theirs), 1u);
  EXPECT_EQ(TakeSaid(),
            (Said{"tells late: there:1", absl::StrCat("releases ", theirs.job, " of 1")}));
  EXPECT_TRUE(fleet->claims().Owns(own));
}

TEST_F(FleetTest, KeepsAJobWhoseNextDaemonHasGoneAndLoadsItAgain) {
  const JobId theirs = JobFor(1);
  database_.mine[theirs] = 6;
  const auto fleet = MakeFleet();
  fleet->Step();
  AddOther();
  fleet->Step();
  database_.others.clear();
  fleet->Step();
  EXPECT_FALSE(fleet->claims().Owns(theirs));
  fleet->Step();
  EXPECT_TRUE(fleet->claims().Owns(theirs));
  EXPECT_EQ(TakeSaid(),
            (Said{absl::StrCat("releases ", theirs.job, " of 1"),
                  absl::StrCat("adopts ", theirs.job), absl::StrCat("proves ", theirs.job)}));
}

// The daemon is cut off from the hosts, and not from the database.
TEST_F(FleetTest, HandsAJobToTheDaemonThatItsAgentsReach) {
  const JobId own = JobFor(0);
  database_.mine[own] = 5;
  const auto fleet = MakeFleet();
  AddOther();
  fleet->Step();
  database_.wanted_there[own] = "there";
  for (int i = 0; i < 3; ++i) fleet->Step();
  EXPECT_TRUE(fleet->claims().Owns(own)) << "an agent is connected";
  is_reached_ = false;
  for (int i = 0; i < 3; ++i) fleet->Step();
  EXPECT_FALSE(fleet->claims().Owns(own));
  EXPECT_EQ(database_.theirs[own].daemon, "there");
}

TEST_F(FleetTest, WantsAndKeepsAJobThatAgentsKeepAskingFor) {
  const JobId theirs = JobFor(1);
  ask_again_ns_ = 0;
  AddOther();
  database_.theirs[theirs] = {"there", kThere, 7, false, 1};
  const auto fleet = MakeFleet();
  fleet->Step();
  fleet->Seek({theirs, "a", true, "", theirs.job});
  fleet->Step();
  EXPECT_TRUE(database_.wanted_here.empty()) << "a first report is no reason";
  fleet->Seek({theirs, "a", true, "", theirs.job});
  fleet->Step();
  EXPECT_EQ(database_.wanted_here, std::set<JobId>{theirs});
  database_.theirs.clear();  // the other one gives it up
  database_.mine[theirs] = 8;
  database_.is_wanted = true;
  fleet->Seek({theirs, "a", true, "", theirs.job});
  for (int i = 0; i < 3; ++i) fleet->Step();
  EXPECT_TRUE(fleet->claims().Owns(theirs)) << "though it prefers the other daemon";
}

// What the daemon found out about the job is not all in the database: no daemon would learn of it.
TEST_F(FleetTest, HandsAJobOverOnceAllAboutItIsWritten) {
  const JobId theirs = JobFor(1);
  database_.mine[theirs] = 6;
  const auto fleet = MakeFleet();
  fleet->Step();
  AddOther();
  is_written_ = false;
  for (int i = 0; i < 3; ++i) fleet->Step();
  EXPECT_EQ(database_.theirs.count(theirs), 0u);
  EXPECT_FALSE(fleet->claims().IsUnproven(theirs));
  is_written_ = true;
  fleet->Step();
  EXPECT_EQ(database_.theirs.count(theirs), 1u);
}

// No daemon would watch the job until the database takes the writes.
TEST_F(FleetTest, CancelsAHandOverWhoseWritesDoNotReachTheDatabase) {
  const JobId theirs = JobFor(1);
  writes_within_ns_ = 0;
  database_.mine[theirs] = 6;
  const auto fleet = MakeFleet();
  fleet->Step();
  AddOther();
  is_written_ = false;
  for (int i = 0; i < 6; ++i) fleet->Step();
  EXPECT_TRUE(fleet->claims().Owns(theirs));
  EXPECT_TRUE(fleet->claims().IsUnproven(theirs)) << "it lacks what is not written";
  EXPECT_EQ(database_.theirs.count(theirs), 0u);
}

TEST_F(FleetTest, ForgetsAJobOfAnotherDaemonOnceAllAboutItIsWritten) {
  forget_others_ns_ = -1;
  database_.mine[kJob] = 5;
  const auto fleet = MakeFleet();
  fleet->Step();
  is_written_ = false;
  database_.mine.clear();
  database_.theirs[kJob] = {"there", kThere, 6, false, 1};
  for (int i = 0; i < 3; ++i) fleet->Step();
  EXPECT_EQ(fleet->claims().TokenOf(kJob), 5) << "what waits has this token";
  is_written_ = true;
  fleet->Step();
  EXPECT_EQ(fleet->claims().TokenOf(kJob), 0);
}

// It gave the job away, no daemon took it, and the database lacks what it wrote about it.
TEST_F(FleetTest, TakesAJobBackOnceItsOwnWritesAboutItCanBeLoaded) {
  const JobId theirs = JobFor(1);
  database_.mine[theirs] = 6;
  const auto fleet = MakeFleet(/*patience_ns=*/INT64_MAX);
  fleet->Step();
  AddOther();
  fleet->Step();  // prepares to hand it over
  is_written_ = false;
  database_.others.clear();
  fleet->Step();  // stays, for want of another daemon
  fleet->Step();
  EXPECT_FALSE(fleet->claims().Owns(theirs));
  is_written_ = true;
  fleet->Step();
  fleet->Step();
  EXPECT_TRUE(fleet->claims().Owns(theirs));
}

TEST_F(FleetTest, ReleasesAnEndedJobOnceItsEndIsWritten) {
  database_.mine[kJob] = 5;
  const auto fleet = MakeFleet();
  has_ = is_written_ = false;
  for (int i = 0; i < 4; ++i) fleet->Step();
  EXPECT_EQ(database_.mine.count(kJob), 1u);
  is_written_ = true;
  fleet->Step();
  EXPECT_EQ(database_.mine.count(kJob), 0u);
}

TEST_F(FleetTest, AJobThatARestartedDaemonTookWithoutTheDatabaseIsProvenLater) {
  const JobId own = JobFor(0);
  AddOther();
  database_.mine[own] = 5;
  database_.away = database_.takes_no = absl::UnavailableError("away");
  const std::string alone_file = testing::TempDir() + "/alone";
  std::ofstream(alone_file) << "one of several\n";
  try_again_ns_ = 0;
  const auto fleet = MakeFleet(/*patience_ns=*/0, alone_file);
  fleet->Seek({own, "a", true, "", own.job});
  fleet->Step();
  fleet->Step();
  EXPECT_TRUE(fleet->claims().Owns(own));
  EXPECT_TRUE(fleet->claims().IsUnproven(own));
  TakeSaid();
  database_.away = database_.takes_no = absl::OkStatus();
  fleet->Step();
  EXPECT_TRUE(fleet->claims().Owns(own));
  EXPECT_FALSE(fleet->claims().IsUnproven(own));
  EXPECT_EQ(fleet->claims().TokenOf(own), 5);
  EXPECT_EQ(TakeSaid(), (Said{absl::StrCat("adopts ", own.job), absl::StrCat("proves ", own.job)}));
}

TEST_F(FleetTest, AProvisionalJobIsUnprovenUntilItIsAdopted) {
  AddOther();
  const auto fleet = MakeFleet();
  fleet->Step();
  fleet->Seek(ReportBy("a"));
  load_ = absl::UnavailableError("away");
  for (int i = 0; i < 4; ++i) {
    fleet->Step();
    EXPECT_TRUE(fleet->claims().IsUnproven(kJob)) << i;
  }
  EXPECT_TRUE(fleet->claims().Owns(kJob));
  load_ = absl::OkStatus();
  TakeSaid();
  for (int i = 0; i < 2 && fleet->claims().IsUnproven(kJob); ++i) fleet->Step();
  EXPECT_FALSE(fleet->claims().IsUnproven(kJob));
  EXPECT_EQ(TakeSaid(), (Said{"adopts job", "proves job"}));
}

TEST_F(FleetTest, TakesAnUnreadableJobInTheEndWithoutDelayingOthers) {
  unreadable_ = {"job"};
  const auto fleet = MakeFleet();
  fleet->Step();
  fleet->Seek(ReportBy("a"));
  fleet->Seek({{kDefaultTenant, "other"}, "a", true, "", "other"});
  for (int i = 0; i < 2; ++i) fleet->Step();
  EXPECT_EQ(TakeSaid(), (Said{"adopts other", "proves other", "tells a: mine"}));
  Said said;
  for (int i = 0; i < 20 && said.empty(); ++i) {
    fleet->Step();
    said = TakeSaid();
  }
  EXPECT_EQ(said, (Said{"numbers of job", "adopts job", "proves job", "tells a: mine"}));
}

// The limits as they are outside of tests, on a clock of the test: each request to the database
// takes a fifth of a second, and each step begins a tenth after the last one.
class FleetTimesTest : public FleetTest {
 protected:
  std::unique_ptr<Fleet> Begin() {
    options_.now_ns = [this] { return database_.now_ns; };
    database_.request_ns = kSecond / 5;
    return Make(options_);
  }
  void Step(Fleet* fleet) {
    fleet->Step();
    database_.now_ns += options_.step_ns;
  }

  FleetOptions options_;
};

// The promise of docs/fleet.md. The dead daemon has renewed its lease at its last moment; its
// agents come to the next daemon within two seconds, and ask it every second, at any part of it.
TEST_F(FleetTimesTest, TheJobsOfADeadDaemonHaveAnotherWithinTenSeconds) {
  for (int64_t begun_ns = 0; begun_ns < 2 * kSecond; begun_ns += kSecond / 10) {
    AddOther();
    database_.theirs[kJob] = {"there", kThere, 7, false, 1};
    const auto fleet = Begin();
    for (int i = 0; i < 100; ++i) Step(fleet.get());
    const int64_t died_ns = database_.now_ns;
    database_.lease_there_ns = died_ns + options_.lease_ns;
    int64_t asks_ns = died_ns + begun_ns;
    while (!fleet->claims().Owns(kJob) && database_.now_ns < died_ns + 60 * kSecond) {
      if (database_.now_ns >= asks_ns) {
        fleet->Seek(ReportBy("a"));
        asks_ns += kSecond;
      }
      Step(fleet.get());
    }
    EXPECT_LE(database_.now_ns - died_ns, 10 * kSecond) << begun_ns;
    EXPECT_GE(database_.now_ns - died_ns, options_.lease_ns) << begun_ns;
    database_ = Database();
  }
}

TEST_F(FleetTimesTest, ALivingDaemonHoldsItsLeaseAllTheTime) {
  const auto fleet = Begin();
  Step(fleet.get());
  while (database_.now_ns < 120 * kSecond) {
    fleet->Seek({{kDefaultTenant, absl::StrCat("job-", database_.now_ns)}, "a", true, "", "job"});
    Step(fleet.get());
    EXPECT_TRUE(fleet->members().HoldsLease()) << database_.now_ns;
  }
}

}  // namespace
}  // namespace rollcall

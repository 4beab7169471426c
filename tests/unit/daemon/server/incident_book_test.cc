// SPDX-License-Identifier: Apache-2.0
// The incidents of a daemon, and what a restarted daemon makes of those of an earlier one.
#include "daemon/server/incident_book.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "daemon/store/sqlite_history.h"
#include "eventually.h"
#include "job_builder.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

constexpr uint64_t kComm = 0xa91f;

JobState RunningJob() {
  JobState state;
  state.key = JobKey("train");
  AgentState& agent = state.agents.emplace_back();
  agent.id = "agent-1";
  agent.host = "node-1";
  agent.is_settled = true;
  Process process;
  process.host = "node-1";
  process.pid = 7;
  process.liveness = Liveness::kAlive;
  state.processes.push_back(process);
  return state;
}

// A launcher has ended the job after one rank died.
JobState DeadJob() {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  job.Die(3, At(10.5), SIGKILL);
  for (const int rank : {0, 1, 2}) job.Die(rank, At(10.7), SIGTERM);
  job.state.key = JobKey("train");
  job.state.agents.push_back(RunningJob().agents.front());
  return job.state;
}

// A hang that no time limit delays.
std::vector<Verdict> Hang() {
  Verdict verdict;
  verdict.cause = Cause::kMissingRank;
  verdict.communicator = kComm;
  verdict.position = 11;
  verdict.at_once = true;
  verdict.summary = "rank 3 has not called AllReduce";
  verdict.waiting_processes = {0};
  return {verdict};
}

// The confirmed incident as an earlier daemon saved it.
v1::Incident Confirmed() {
  v1::Incident incident;
  incident.set_id("train-1");
  incident.set_job("train");
  incident.set_state("confirmed");
  incident.mutable_opened_at()->set_seconds(1000);
  incident.mutable_confirmed_at()->set_seconds(1001);
  incident.set_report_path("/reports/train-1");
  v1::Verdict* verdict = incident.add_verdicts();
  verdict->set_cause("missing_rank");
  verdict->mutable_communicator()->set_id("a91f");
  verdict->mutable_call()->set_position(11);
  return incident;
}

AlertRow SentAlert(int32_t sequence, const std::string& kind) {
  return {"train-1", sequence, kind, 1000, Confirmed(), true, {}};
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The most memory that this process has had at a time since the last call, in MiB; 0: the kernel does
// not say.
int PeakMemory() {
  int kib = 0;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) kib = std::stoi(line.substr(6));
  }
  std::ofstream forget("/proc/self/clear_refs");
  return (forget << 5 << std::flush) ? kib / 1024 : 0;
}

// Whose the job is, as the test says.
class OwnershipOfTest : public JobOwnership {
 public:
  bool Owns(const JobId&) const override { return owns; }
  bool MayAlert(const JobId&) const override { return owns && !is_unproven; }
  int64_t TokenOf(const JobId&) const override { return 1; }
  bool IsUnproven(const JobId&) const override { return is_unproven; }

  bool owns = true, is_unproven = false;
};

class IncidentBookTest : public testing::Test {
 protected:
  std::unique_ptr<History> OpenHistory() const {
    auto history = SqliteHistory::Open(path_, {});
    EXPECT_TRUE(history.ok()) << history.status();
    return history.ok() ? *std::move(history) : nullptr;
  }
  // A daemon begins. Its alerts go to a command that reads them only.
  std::unique_ptr<IncidentBook> Begin() {
    IncidentBookOptions options;
    options.history.path = path_;
    options.report_dir = report_dir_;
    if (!alert_command_.empty()) {
      options.alerts.targets = {{AlertKind::kCommand, alert_command_}};
    }
    options.quota = quota_;
    options.log_incidents = false;
    options.ownership = &ownership_;
    options.history.is_unproven = [this](const JobId& job) { return ownership_.IsUnproven(job); };
    auto book = std::make_unique<IncidentBook>(options, &timeline_, &counters_);
    EXPECT_TRUE(book->Start().ok());
    return book;
  }
  std::vector<StackRequest> Apply(std::vector<Verdict> verdicts, IncidentBook* book) {
    return book->Apply(RunningJob(), std::move(verdicts), timeline_.Now());
  }
  // A hang is confirmed and is over a moment later, `times` times.
  void Flap(int times, IncidentBook* book) {
    for (int i = 0; i < times; ++i) {
      flap_ns_ += 10'000'000'000;
      book->Apply(RunningJob(), Hang(), flap_ns_);
      book->Apply(RunningJob(), {}, flap_ns_ + 1'000'000'000);
      book->Apply(RunningJob(), {}, flap_ns_ + 3'000'000'000);
    }
  }
  // The number of the newest incident in the history.
  int LastStored() const { return OpenHistory()->LastNumbers().value()[JobKey("train")]; }
  uint64_t CountDropped(Dropped what) const {
    return counters_.Get().dropped[static_cast<size_t>(what)];
  }
  static bool Sends(uint64_t alerts, const IncidentBook& book) {
    return Eventually([&] { return book.CountDeliveries().alerts_sent == alerts; });
  }
  // Alerts that were sent or wait.
  static uint64_t CountAlerts(const IncidentBook& book) {
    const DeliveryCounts counts = book.CountDeliveries();
    return counts.alerts_sent + counts.alerts_waiting + counts.alerts_failed;
  }

  const AllThreadsEnd threads_;
  const TemporaryTree tree_;
  const std::string path_ = tree_.root() + "/history.db";
  std::string report_dir_;
  std::string alert_command_ = "cat > /dev/null";
  IncidentQuotaLimits quota_;
  OwnershipOfTest ownership_;
  DaemonCounters counters_;
  Timeline timeline_;
  int64_t flap_ns_ = timeline_.Now();
};

TEST_F(IncidentBookTest, AConfirmedHangIsAnnouncedOnceAcrossRestarts) {
  {
    const auto book = Begin();
    Apply(Hang(), book.get());
    EXPECT_TRUE(Sends(1, *book));
    book->Finish(std::chrono::steady_clock::now());
  }
  const auto book = Begin();
  Apply(Hang(), book.get());
  EXPECT_EQ(CountAlerts(*book), 0u);
  ASSERT_EQ(book->All("train").size(), 1u);
  EXPECT_EQ(book->All("train")[0].id(), "train-1");
}

// It took the job while the database was away, and found the hang that the owner had announced.
TEST_F(IncidentBookTest, AnIncidentOfAnUnprovenJobGivesWayToTheStoredOne) {
  ownership_.is_unproven = true;
  const auto book = Begin();
  book->AvoidNumbersOfOthers(JobKey("train"));
  Apply(Hang(), book.get());
  ASSERT_EQ(book->All("train").size(), 1u);
  EXPECT_NE(book->All("train")[0].id(), "train-1");
  Continuation stored;
  stored.last_number = 1;
  stored.open.push_back(Confirmed());
  stored.alerts.push_back(SentAlert(1, "confirmed"));
  book->Adopt(JobKey("train"), std::move(stored));
  ownership_.is_unproven = false;
  book->StoreProven(JobKey("train"));
  Apply(Hang(), book.get());
  ASSERT_EQ(book->All("train").size(), 1u);
  EXPECT_EQ(book->All("train")[0].id(), "train-1");
  EXPECT_EQ(CountAlerts(*book), 0u) << "the owner has announced it";
}

TEST_F(IncidentBookTest, AnIncidentOfAnUnprovenJobStaysIfNobodyStoredAnother) {
  ownership_.is_unproven = true;
  const auto book = Begin();
  Apply(Hang(), book.get());
  EXPECT_EQ(LastStored(), 0) << "nobody may hear of it";
  book->Adopt(JobKey("train"), {});
  ownership_.is_unproven = false;
  book->StoreProven(JobKey("train"));
  EXPECT_TRUE(Sends(1, *book));
  EXPECT_EQ(LastStored(), 1);
}

// A thread that saw the job go runs when it is back.
TEST_F(IncidentBookTest, ALateReleaseDropsNothingOfAJobThatHasComeBack) {
  const auto book = Begin();
  ownership_.owns = false;
  Continuation stored;
  stored.last_number = 1;
  stored.open.push_back(Confirmed());
  book->Adopt(JobKey("train"), std::move(stored));
  book->ReleaseUnowned(JobKey("train"));
  EXPECT_EQ(book->All("train").size(), 1u);
  ownership_.owns = true;
  book->StoreProven(JobKey("train"));
  book->ReleaseUnowned(JobKey("train"));
  EXPECT_EQ(book->All("train").size(), 1u);
  ownership_.owns = false;
  book->ReleaseUnowned(JobKey("train"));
  EXPECT_TRUE(book->All("train").empty());
}

// The daemon was killed after it saved the incident and before it saved the alert.
TEST_F(IncidentBookTest, ARestartedDaemonAnnouncesAHangWhoseAlertIsLost) {
  ASSERT_TRUE(OpenHistory()->Save(Confirmed()).ok());
  const auto book = Begin();
  Apply({}, book.get());
  EXPECT_EQ(CountAlerts(*book), 0u) << "the hang may be over";
  Apply(Hang(), book.get());
  EXPECT_TRUE(Sends(1, *book));
}

TEST_F(IncidentBookTest, ARestartedDaemonAnnouncesAnEndWhoseAlertIsLost) {
  {
    v1::Incident closed = Confirmed();
    closed.set_state("resolved");
    closed.mutable_closed_at()->set_seconds(1060);
    const auto history = OpenHistory();
    ASSERT_TRUE(history->Save(closed).ok());
    ASSERT_TRUE(history->SaveHosts(JobKey("train"), {"node-1"}, 1000).ok());
    ASSERT_TRUE(history->SaveAlert(SentAlert(1, "confirmed")).ok());
  }
  {
    const auto book = Begin();
    EXPECT_TRUE(Sends(1, *book));
    book->Finish(std::chrono::steady_clock::now());
  }
  EXPECT_EQ(CountAlerts(*Begin()), 0u);
}

TEST_F(IncidentBookTest, TheHistoryLearnsWhereTheReportIs) {
  report_dir_ = tree_.root() + "/reports";
  const auto book = Begin();
  Apply(Hang(), book.get());
  // A first report waits a little for stacks.
  const bool is_written = Eventually([&] {
    book->Publish();
    return !book->All("train")[0].report_path().empty();
  });
  EXPECT_TRUE(is_written);
  const std::string path = book->All("train")[0].report_path();
  book->Publish();
  book->Finish(std::chrono::steady_clock::now());
  EXPECT_EQ(OpenHistory()->Get("train-1")->report_path(), path);
}

// An earlier daemon may have known hosts that this one has not heard yet.
TEST_F(IncidentBookTest, NothingIsConfirmedAtFirstWhereTheHistoryIsNotReadable) {
  IncidentBookOptions options;
  options.history.path = tree_.root() + "/missing/history.db";
  options.history.is_optional = true;
  options.log_incidents = false;
  IncidentBook book(options, &timeline_);
  ASSERT_TRUE(book.Start().ok());
  Apply(Hang(), &book);
  EXPECT_TRUE(book.All("train").empty());
  EXPECT_TRUE(book.NeedsDiagnosis(JobKey("train")));
}

// Two daemons without a history. The first rank of two reports: the other one's host may be late.
TEST_F(IncidentBookTest, WithoutAHistoryNothingIsCertainOfAnEarlierJobUntilAllItsRanksReport) {
  IncidentBookOptions options;
  options.log_incidents = false;
  const auto certainty = [&](int32_t world_size, int64_t began_ns) {
    IncidentBook book(options, &timeline_);
    EXPECT_TRUE(book.Start().ok());
    JobState state = RunningJob();
    state.processes[0].global_rank = 0;
    state.processes[0].world_size = world_size;
    std::vector<Verdict> verdicts = Hang();
    verdicts[0].certainty = Certainty::kCertain;
    book.Apply(state, verdicts, timeline_.Now(), began_ns);
    const auto all = book.All("train");
    return all.size() == 1 ? all[0].verdicts(0).certainty() : "no incident";
  };
  EXPECT_EQ(certainty(2, timeline_.Now() - 3600'000'000'000), "likely");
  EXPECT_EQ(certainty(1, timeline_.Now() - 3600'000'000'000), "certain") << "all have reported";
  EXPECT_EQ(certainty(2, timeline_.Now()), "certain") << "no earlier daemon had the job";
}

// The history is unusable at the start. Its file comes later, with incidents of an earlier daemon.
class LateHistoryTest : public IncidentBookTest {
 protected:
  // Returns the history of the earlier daemon, with one incident.
  std::unique_ptr<History> MakeEarlier() {
    std::filesystem::create_directory(ready_);
    v1::Incident old = Confirmed();
    old.set_id("train-7");
    old.set_state("resolved");
    // Young enough for the history to keep it.
    old.mutable_opened_at()->set_seconds(timeline_.ToWallTime(timeline_.Now()) / 1'000'000'000);
    *old.mutable_closed_at() = old.opened_at();
    auto history = SqliteHistory::Open(ready_ + "/history.db", {});
    EXPECT_TRUE(history.ok() && (*history)->Save(old).ok());
    return *std::move(history);
  }
  std::unique_ptr<IncidentBook> BeginWithout() {
    IncidentBookOptions options;
    options.history.path = tree_.root() + "/later/history.db";
    options.history.is_optional = true;
    options.history.first_pause_ns = 20'000'000;
    options.log_incidents = false;
    auto book = std::make_unique<IncidentBook>(options, &timeline_);
    EXPECT_TRUE(book->Start().ok());
    return book;
  }
  void Bring(IncidentBook* book) const {
    std::filesystem::rename(ready_, tree_.root() + "/later");
    EXPECT_TRUE(Eventually([&] {
      book->Publish();
      return book->Get("train-7").ok();
    }));
    book->Publish();
  }

  const std::string ready_ = tree_.root() + "/ready";
};

TEST_F(LateHistoryTest, RaisesTheNumbers) {
  MakeEarlier();
  const auto book = BeginWithout();
  Apply({}, book.get());
  Bring(book.get());
  Apply(Hang(), book.get());
  ASSERT_EQ(book->All("train").size(), 1u);
  EXPECT_EQ(book->All("train")[0].id(), "train-8");
}

TEST_F(LateHistoryTest, HostsOfAJobThatHasReturnedAreAwaited) {
  ASSERT_TRUE(MakeEarlier()->SaveHosts(JobKey("train"), {"node-1", "node-2"}, 1000).ok());
  const auto book = BeginWithout();
  Apply({}, book.get());
  Bring(book.get());
  Apply(Hang(), book.get());
  EXPECT_TRUE(book->All("train").empty()) << "node-2 has not reported";
  book->Apply(RunningJob(), Hang(), timeline_.Now() + kReturnWithinNs);
  const auto incidents = book->All("train");
  ASSERT_EQ(incidents.size(), 1u);
  ASSERT_GT(incidents[0].verdicts(0).missing_evidence_size(), 0);
  EXPECT_EQ(incidents[0].verdicts(0).missing_evidence(0),
            "node-2 has not reported since the daemon was restarted");
}

// Otherwise the new incident would replace an earlier one in the history.
TEST_F(IncidentBookTest, AnIncidentHasANumberOfItsOwnWhileTheHistoryIsNotReadable) {
  IncidentBookOptions options;
  options.history.path = tree_.root() + "/missing/history.db";
  options.history.is_optional = true;
  options.log_incidents = false;
  IncidentBook book(options, &timeline_);
  ASSERT_TRUE(book.Start().ok());
  const int64_t now_ns = timeline_.Now() + kReturnWithinNs;
  book.Apply(RunningJob(), Hang(), now_ns);
  book.Apply(RunningJob(), {}, now_ns + 1'000'000'000);
  book.Apply(RunningJob(), {}, now_ns + 3'000'000'000);
  book.Apply(RunningJob(), Hang(), now_ns + 4'000'000'000);
  const int64_t seconds = timeline_.ToWallTime(now_ns) / 1'000'000'000;
  const auto incidents = book.All("train");
  ASSERT_EQ(incidents.size(), 2u);
  EXPECT_EQ(incidents[0].id(), absl::StrCat("train-", seconds + 1));
  EXPECT_EQ(incidents[1].id(), absl::StrCat("train-", seconds + 5));
}

// A job that EndAbandoned() gave up may live.
TEST_F(IncidentBookTest, TheDeathOfAJobThatReturnsAfterItWasAbandonedIsJudged) {
  for (const bool abandoned : {true, false}) {
    v1::Incident closed = Confirmed();
    closed.set_state("ended");
    closed.set_abandoned(abandoned);
    *closed.mutable_closed_at() = closed.confirmed_at();
    {
      const auto history = OpenHistory();
      ASSERT_TRUE(history->Save(closed).ok());
      ASSERT_TRUE(history->SaveHosts(JobKey("train"), {"node-1"}, 1000).ok());
    }
    const auto book = Begin();
    book->Apply(DeadJob(), {}, At(12));
    const auto incidents = book->All("train");
    EXPECT_EQ(incidents.size(), abandoned ? 1u : 0u);
    book->Finish(std::chrono::steady_clock::now());
  }
}

// The hosts of the job are silent for too long.
TEST_F(IncidentBookTest, TheLiveIncidentOfAForgottenJobEndsInTheHistory) {
  const auto book = Begin();
  Apply(Hang(), book.get());
  book->Forget(JobKey("train"), timeline_.Now());
  EXPECT_TRUE(book->All("train").empty());
  const auto kept = book->Get("train-1");
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->state(), "ended");
  EXPECT_TRUE(kept->abandoned());
  EXPECT_TRUE(Sends(2, *book)) << "the hang and its end";
}

// Otherwise the report would say for ever that the hang lasts, and would never be deleted.
TEST_F(IncidentBookTest, TheReportOfAForgottenJobSaysWhenTheHangEnded) {
  report_dir_ = tree_.root() + "/reports";
  const auto book = Begin();
  Apply(Hang(), book.get());
  ASSERT_TRUE(Eventually([&] {
    book->Publish();
    return !book->All("train")[0].report_path().empty();
  }));
  const std::string report = book->All("train")[0].report_path() + "/incident.json";
  EXPECT_EQ(ReadAll(report).find("closed_at"), std::string::npos);
  book->Forget(JobKey("train"), timeline_.Now());
  book->Publish();
  EXPECT_TRUE(Eventually([&] { return ReadAll(report).find("closed_at") != std::string::npos; }))
      << ReadAll(report);
}

// No stacks will come any more.
TEST_F(IncidentBookTest, AForgottenJobHasAReportAlthoughItWaitedForStacks) {
  report_dir_ = tree_.root() + "/reports";
  const auto book = Begin();
  ASSERT_FALSE(Apply(Hang(), book.get()).empty()) << "it waits for none";
  book->Publish();
  EXPECT_EQ(book->CountDeliveries().reports.written + book->CountDeliveries().reports.waiting, 0u);
  book->Forget(JobKey("train"), timeline_.Now());
  book->Publish();
  EXPECT_TRUE(Eventually([&] { return book->CountDeliveries().reports.written == 1; }));
}

// The stacks of thousands of ranks take megabytes, and diagnoses need the book meanwhile.
TEST_F(IncidentBookTest, AListWithoutStacksNeverCopiesThem) {
  IncidentBookOptions options;  // no thread saves the incident meanwhile
  options.log_incidents = false;
  IncidentBook book(options, &timeline_);
  ASSERT_TRUE(book.Start().ok());
  Apply(Hang(), &book);
  constexpr int kMiB = 64;
  StackResult result;
  result.job = JobKey("train");
  result.incident = "train-1";
  result.stack.set_error(std::string(size_t{kMiB} << 20, 'x'));
  book.AddStack(result);
  v1::ListIncidentsRequest request;
  request.set_live_only(true);
  PeakMemory();
  const int before = PeakMemory();
  const auto listed = book.List(request);
  const int after = PeakMemory();
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->incidents_size(), 1);
  EXPECT_EQ(listed->incidents(0).id(), "train-1");
  EXPECT_EQ(listed->incidents(0).verdicts(0).cause(), "missing_rank");
  EXPECT_TRUE(listed->incidents(0).has_confirmed_at());
  EXPECT_TRUE(listed->incidents(0).stacks().empty());
  if (before == 0) GTEST_SKIP() << "the kernel does not say how much memory a process has had";
  EXPECT_LT(after - before, kMiB / 2);
  request.set_with_stacks(true);
  EXPECT_EQ(book.List(request)->incidents(0).stacks_size(), 1);
}

// The lines come from the stacks that the list leaves out.
TEST_F(IncidentBookTest, AListWithoutStacksNamesTheLineOfACulprit) {
  const auto book = Begin();
  std::vector<Verdict> verdicts = Hang();
  Culprit culprit;
  culprit.process = 0;
  culprit.rank = 3;
  culprit.host = "node-1";
  culprit.pid = 7;
  verdicts[0].culprits = {culprit};
  Apply(verdicts, book.get());
  StackResult result;
  result.job = JobKey("train");
  result.incident = "train-1";
  result.stack.set_host("node-1");
  result.stack.set_pid(7);
  v1::Frame* frame = result.stack.add_threads()->add_frames();
  frame->set_function("validate");
  frame->set_file("/x/train.py");
  frame->set_line(212);
  frame->set_python(true);
  book->AddStack(result);
  v1::ListIncidentsRequest request;
  request.set_live_only(true);
  const auto listed = book->List(request);
  ASSERT_TRUE(listed.ok() && listed->incidents_size() == 1) << listed.status();
  EXPECT_EQ(listed->incidents(0).verdicts(0).culprits(0).at(),
            book->All("train")[0].verdicts(0).culprits(0).at());
  EXPECT_NE(listed->incidents(0).verdicts(0).culprits(0).at(), "");
}

TEST_F(IncidentBookTest, AJobThatFlapsIsAnnouncedSixTimesAndResolvedEachTime) {
  const auto book = Begin();
  Flap(20, book.get());
  EXPECT_TRUE(Sends(12, *book)) << "six hangs and their ends";
  EXPECT_EQ(CountAlerts(*book), 12u);
  EXPECT_EQ(CountDropped(Dropped::kAlerts), 14u);
  const auto incidents = book->All("train");
  ASSERT_EQ(incidents.size(), 20u);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(incidents[i].alert_held_back(), i >= 6) << i;
}

TEST_F(IncidentBookTest, OneAlertTellsOfTheHangsThatWereHeldBack) {
  const std::string sent = tree_.root() + "/sent";
  alert_command_ = "cat >> " + sent + "; echo >> " + sent;
  quota_.alerts = 1;
  quota_.lasting_ns = 0;
  const auto book = Begin();
  Flap(3, book.get());
  book->Publish();
  EXPECT_TRUE(Sends(2, *book)) << "those that are over wait for the end of the hour";
  Apply(Hang(), book.get());
  book->Publish();
  EXPECT_TRUE(Sends(3, *book));
  const std::string text = ReadAll(sent);
  EXPECT_NE(text.find("flapping: 3 more incidents in the last hour; the newest: rank 3 has not"),
            std::string::npos)
      << text;
  EXPECT_FALSE(book->All("train").back().alert_held_back());
  book->Apply(RunningJob(), {}, flap_ns_ + 100'000'000'000);
  book->Apply(RunningJob(), {}, flap_ns_ + 103'000'000'000);
  EXPECT_TRUE(Sends(4, *book)) << "its end";
}

v1::Silence OfAllJobs() {
  v1::Silence silence;
  silence.set_job("*");
  return silence;
}

TEST_F(IncidentBookTest, ASilenceHoldsBackTheAlertUntilItEnds) {
  const auto book = Begin();
  const auto silence = book->AddSilence(OfAllJobs(), 3600, "ada", Tenants::All());
  ASSERT_TRUE(silence.ok()) << silence.status();
  Apply(Hang(), book.get());
  book->Publish();
  EXPECT_EQ(CountAlerts(*book), 0u);
  EXPECT_EQ(book->All("train")[0].silenced().who(), "ada");
  EXPECT_EQ(book->ListSilences(Tenants::All())[0].incidents(), 1);
  EXPECT_EQ(book->CountDeliveries().alerts_silenced, 1u);
  ASSERT_TRUE(book->EndSilence(silence->id(), Tenants::All()).ok());
  book->Publish();
  EXPECT_TRUE(Sends(1, *book));
  EXPECT_FALSE(book->All("train")[0].has_silenced());
  book->Publish();
  EXPECT_EQ(CountAlerts(*book), 1u) << "once";
}

// Another daemon is whoever writes into the same store.
TEST_F(IncidentBookTest, ASilenceOfAnotherDaemonHoldsBackTheAlertUntilSomebodyEndsIt) {
  const auto book = Begin();
  book->RefreshSilences();
  v1::Silence silence = OfAllJobs();
  silence.set_id("silence-1-other");
  silence.set_who("bob");
  silence.mutable_until()->set_seconds(time(nullptr) + 3600);
  ASSERT_TRUE(OpenHistory()->SaveSilence(silence).ok());
  book->RefreshSilences();
  ASSERT_EQ(book->ListSilences(Tenants::All()).size(), 1u);
  Apply(Hang(), book.get());
  book->Publish();
  EXPECT_EQ(CountAlerts(*book), 0u);
  EXPECT_EQ(book->All("train")[0].silenced().who(), "bob");
  silence.mutable_until()->set_seconds(time(nullptr) - 1);
  ASSERT_TRUE(book->AddSilence(OfAllJobs(), 3600, "ada", Tenants::All()).ok());
  book->AwaitSaved();  // what it counted on bob's silence, too
  ASSERT_TRUE(OpenHistory()->SaveSilence(silence).ok());
  book->RefreshSilences();
  ASSERT_EQ(book->ListSilences(Tenants::All()).size(), 1u);
  EXPECT_EQ(book->ListSilences(Tenants::All())[0].who(), "ada");
}

TEST_F(IncidentBookTest, AHangThatIsOverBeforeItsSilenceEndsIsNeverAnnounced) {
  const auto book = Begin();
  const auto silence = book->AddSilence(OfAllJobs(), 3600, "ada", Tenants::All());
  ASSERT_TRUE(silence.ok()) << silence.status();
  Flap(3, book.get());
  ASSERT_TRUE(book->EndSilence(silence->id(), Tenants::All()).ok());
  book->Publish();
  EXPECT_EQ(CountAlerts(*book), 0u);
  EXPECT_TRUE(book->All("train")[0].has_silenced()) << "why nobody was told";
}

TEST_F(IncidentBookTest, TheEndOfAnAnnouncedHangIsToldInSpiteOfASilence) {
  const auto book = Begin();
  Apply(Hang(), book.get());
  EXPECT_TRUE(Sends(1, *book));
  ASSERT_TRUE(book->AddSilence(OfAllJobs(), 3600, "ada", Tenants::All()).ok());
  EXPECT_TRUE(book->All("train")[0].has_silenced());
  EXPECT_EQ(book->CountDeliveries().alerts_silenced, 0u) << "nothing of it is held back";
  const int64_t later_ns = timeline_.Now() + 1'000'000'000;
  book->Apply(RunningJob(), {}, later_ns);
  book->Apply(RunningJob(), {}, later_ns + 3'000'000'000);
  EXPECT_TRUE(Sends(2, *book));
}

TEST_F(IncidentBookTest, ASilenceAndWhatItHoldsBackOutliveTheDaemon) {
  {
    const auto book = Begin();
    ASSERT_TRUE(book->AddSilence(OfAllJobs(), 3600, "ada", Tenants::All()).ok());
    Apply(Hang(), book.get());
    book->Publish();
    book->Finish(std::chrono::steady_clock::now());
  }
  const auto book = Begin();
  const auto silences = book->ListSilences(Tenants::All());
  ASSERT_EQ(silences.size(), 1u);
  EXPECT_EQ(silences[0].incidents(), 1);
  Apply(Hang(), book.get());
  book->Publish();
  EXPECT_EQ(CountAlerts(*book), 0u);
  EXPECT_EQ(book->ListSilences(Tenants::All())[0].incidents(), 1) << "counted once";
  ASSERT_TRUE(book->EndSilence(silences[0].id(), Tenants::All()).ok());
  book->Publish();
  EXPECT_TRUE(Sends(1, *book));
}

TEST_F(IncidentBookTest, StatusAndListTellOfTheSameWait) {
  const auto book = Begin();
  Apply(Hang(), book.get());
  std::vector<Verdict> later = Hang();
  later[0].summary = "rank 3 has not called AllReduce; 3 ranks have waited 48 s";
  Apply(later, book.get());
  const JobBrief brief = book->Brief(JobKey("train"));
  ASSERT_TRUE(brief.live.has_value() && brief.last.has_value());
  EXPECT_EQ(brief.live->summary, later[0].summary);
  EXPECT_EQ(brief.last->summary(), later[0].summary);
  const auto listed = book->List(v1::ListIncidentsRequest());
  ASSERT_TRUE(listed.ok());
  EXPECT_EQ(listed->incidents(0).verdicts(0).summary(), later[0].summary);
}

TEST_F(IncidentBookTest, EachSilenceThatFitsCountsTheIncidentOnce) {
  const auto counts = [](const IncidentBook& book) {
    std::map<std::string, int> counts;
    for (const v1::Silence& one : book.ListSilences(Tenants::All())) counts[one.comment()] = one.incidents();
    return counts;
  };
  const auto add = [](const char* comment, const char* job, IncidentBook* book) {
    v1::Silence silence;
    silence.set_job(job);
    silence.set_comment(comment);
    ASSERT_TRUE(book->AddSilence(silence, 3600, "ada", Tenants::All()).ok());
  };
  using Counts = std::map<std::string, int>;
  {
    const auto book = Begin();
    add("all", "*", book.get());
    add("train", "train", book.get());
    add("other", "other", book.get());
    Apply(Hang(), book.get());
    book->Publish();
    EXPECT_EQ(counts(*book), (Counts{{"all", 1}, {"train", 1}, {"other", 0}}));
    add("late", "t*", book.get());
    book->Publish();
    EXPECT_EQ(counts(*book), (Counts{{"all", 1}, {"train", 1}, {"other", 0}, {"late", 1}}));
    EXPECT_EQ(book->CountDeliveries().alerts_silenced, 1u);
    book->Finish(std::chrono::steady_clock::now());
  }
  const auto book = Begin();
  Apply(Hang(), book.get());
  book->Publish();
  EXPECT_EQ(counts(*book), (Counts{{"all", 1}, {"train", 1}, {"other", 0}, {"late", 1}}));
  for (const v1::Silence& one : book->ListSilences(Tenants::All())) {
    ASSERT_TRUE(book->EndSilence(one.id(), Tenants::All()).ok());
  }
  book->Publish();
  EXPECT_TRUE(Sends(1, *book));
  add("after the alert", "*", book.get());
  book->Publish();
  EXPECT_EQ(counts(*book), (Counts{{"after the alert", 0}}));
}

TEST_F(IncidentBookTest, WhatExceedsTheIncidentsOfAnHourIsCountedAndNotStored) {
  quota_.incidents = 5;
  report_dir_ = tree_.root() + "/reports";
  const auto book = Begin();
  Flap(20, book.get());
  EXPECT_EQ(book->All("train").size(), 5u);
  EXPECT_EQ(CountDropped(Dropped::kIncidents), 15u);
  book->BeginStop();
  book->Publish();
  book->Finish(std::chrono::steady_clock::now());
  EXPECT_EQ(LastStored(), 5);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(report_dir_), {}), 5);
}

TEST_F(IncidentBookTest, AHangThatLastsIsStoredWhateverCameBefore) {
  quota_.incidents = 1;
  quota_.lasting_ns = 1'000'000'000;
  alert_command_ = "";
  const auto book = Begin();
  Flap(3, book.get());
  book->Apply(RunningJob(), Hang(), timeline_.Now());
  book->Publish();
  ASSERT_EQ(book->All("train").size(), 2u) << "shown while it lasts";
  EXPECT_NE(book->All("train").back().report_note(), "");
  EXPECT_TRUE(Eventually([&] {
    book->Publish();
    return book->All("train").back().report_note().empty();
  }));
  book->Finish(std::chrono::steady_clock::now());
  EXPECT_EQ(LastStored(), 4);
}

}  // namespace
}  // namespace rollcall

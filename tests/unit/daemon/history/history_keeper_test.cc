// SPDX-License-Identifier: Apache-2.0
// The history on full disks, and with locked, damaged or missing files.
#include "daemon/history/history_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "daemon/history/history_write.h"
#include "daemon/history/sqlite_history.h"
#include "eventually.h"
#include "small_disk.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

v1::Incident Incident(int number, int64_t opened_s, const std::string& state = "resolved") {
  v1::Incident incident;
  incident.set_id(absl::StrCat("train-", number));
  incident.set_job("train");
  incident.set_state(state);
  incident.mutable_opened_at()->set_seconds(opened_s);
  incident.mutable_confirmed_at()->set_seconds(opened_s);
  incident.mutable_closed_at()->set_seconds(opened_s + 60);
  incident.add_verdicts()->set_cause("missing_rank");
  return incident;
}

std::vector<std::string> Ids(const HistoryKeeper& keeper,
                             const std::vector<v1::Incident>& live = {}) {
  std::vector<std::string> ids;
  const auto list = keeper.List({}, live);
  EXPECT_TRUE(list.ok()) << list.status();
  if (!list.ok()) return ids;
  for (const v1::Incident& incident : list->incidents()) ids.push_back(incident.id());
  return ids;
}

// Another process's transaction on the file.
class Lock {
 public:
  explicit Lock(const std::string& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &db_), SQLITE_OK);
    sqlite3_busy_timeout(db_, int{kPatience.count()});  // the keeper may trim the file just now
    EXPECT_EQ(sqlite3_exec(db_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  }
  ~Lock() { sqlite3_close(db_); }

 private:
  sqlite3* db_ = nullptr;
};

class HistoryKeeperTest : public testing::Test {
 protected:
  HistoryKeeperOptions Options(const fs::path& file = "history.db") const {
    HistoryKeeperOptions options;
    options.path = folder_ / file;
    options.retry = {20'000'000, 100'000'000};
    options.limits.keep_ns = int64_t{1} << 62;  // the incidents are from 1970
    return options;
  }
  static bool IsSaved(const HistoryKeeper& keeper) { return keeper.counts().waiting == 0; }

  const TemporaryTree tree_;
  const fs::path folder_ = tree_.root();
};

TEST_F(HistoryKeeperTest, ListsSavedAndWaitingIncidentsOnce) {
  HistoryKeeper keeper(Options());
  ASSERT_TRUE(keeper.Start().ok());
  keeper.Save(Incident(1, 1000));
  keeper.Save(Incident(2, 2000));
  ASSERT_TRUE(Eventually([&] { return IsSaved(keeper); }));
  const Lock lock(folder_ / "history.db");
  keeper.Save(Incident(2, 2000, "ended"));
  keeper.Save(Incident(3, 3000));
  EXPECT_EQ(Ids(keeper, {Incident(4, 4000)}),
            (std::vector<std::string>{"train-4", "train-3", "train-2", "train-1"}));
  EXPECT_EQ(keeper.Get("train-2")->state(), "ended");
  EXPECT_EQ(keeper.Get("train-1")->state(), "resolved");
  EXPECT_EQ(keeper.LastNumber({"default", "train"}), 3);
}

TEST_F(HistoryKeeperTest, SavesWhenALockedFileIsFree) {
  HistoryKeeper keeper(Options());
  ASSERT_TRUE(keeper.Start().ok());
  auto lock = std::make_unique<Lock>(folder_ / "history.db");
  keeper.Save(Incident(1, 1000));
  ASSERT_TRUE(Eventually([&] { return keeper.counts().failed > 0; }));
  lock.reset();
  EXPECT_TRUE(Eventually([&] { return IsSaved(keeper); }));
  EXPECT_EQ(keeper.counts().lost, 0u);
}

TEST_F(HistoryKeeperTest, SavesWhenAFullDiskHasRoomAgain) {
  const SmallDisk disk(folder_ / "disk");
  if (!disk.problem().empty()) GTEST_SKIP() << disk.problem();
  HistoryKeeper keeper(Options("disk/history.db"));
  ASSERT_TRUE(keeper.Start().ok());
  disk.Fill();
  v1::Incident large = Incident(1, 1000);
  large.mutable_verdicts(0)->set_summary(std::string(100'000, 'x'));
  keeper.Save(large);
  ASSERT_TRUE(Eventually([&] { return keeper.counts().failed > 1; }));
  EXPECT_EQ(Ids(keeper), std::vector<std::string>{"train-1"});
  disk.Free();
  EXPECT_TRUE(Eventually([&] { return IsSaved(keeper); }));
  EXPECT_EQ(Ids(keeper), std::vector<std::string>{"train-1"});
}

TEST_F(HistoryKeeperTest, ReplacesADamagedFileAndRequestsAllIncidentsAgain) {
  HistoryKeeper keeper(Options());
  ASSERT_TRUE(keeper.Start().ok());
  keeper.Save(Incident(1, 1000));
  ASSERT_TRUE(Eventually([&] { return IsSaved(keeper); }));
  EXPECT_FALSE(keeper.ConsumeRecreated());
  // Damages the open file, and the part that SQLite has not moved into it yet.
  for (const char* part : {"history.db", "history.db-wal"}) {
    std::fstream file(folder_ / part, std::ios::in | std::ios::out);
    file << std::string(fs::file_size(folder_ / part), 'x');
  }
  for (int i = 2; i < 20; ++i) keeper.Save(Incident(i, 1000 * i));
  // Either the writer or the reader finds the damage first.
  EXPECT_TRUE(Eventually([&] {
    (void)keeper.List({}, {});
    return keeper.ConsumeRecreated();
  }));
  EXPECT_TRUE(Eventually([&] { return IsSaved(keeper); }));
  keeper.Save(Incident(20, 20'000));
  EXPECT_TRUE(Eventually([&] { return IsSaved(keeper); }));
  EXPECT_EQ(Ids(keeper).front(), "train-20");
}

TEST_F(HistoryKeeperTest, ReplacesARemovedFile) {
  HistoryKeeper keeper(Options());
  ASSERT_TRUE(keeper.Start().ok());
  keeper.Save(Incident(1, 1000));
  ASSERT_TRUE(Eventually([&] { return IsSaved(keeper); }));
  for (const auto& entry : fs::directory_iterator(folder_)) fs::remove(entry.path());
  keeper.Save(Incident(2, 2000));
  EXPECT_TRUE(Eventually([&] { return keeper.ConsumeRecreated(); }));
  EXPECT_TRUE(Eventually([&] { return IsSaved(keeper); }));
  EXPECT_TRUE(fs::exists(folder_ / "history.db"));
}

TEST_F(HistoryKeeperTest, AnOptionalFileMayBecomeUsableLater) {
  HistoryKeeperOptions options = Options("later/history.db");
  options.is_optional = true;
  HistoryKeeper keeper(options);
  ASSERT_TRUE(keeper.Start().ok());
  keeper.Save(Incident(1, 1000));
  // A list needs the file, and does not wait for it.
  EXPECT_EQ(keeper.List({}, {}).status(), absl::UnavailableError("the history cannot be read now"));
  EXPECT_EQ(keeper.Get("train-1")->job(), "train");
  fs::create_directories(folder_ / "later");
  EXPECT_TRUE(Eventually([&] { return IsSaved(keeper); }));
  EXPECT_EQ(Ids(keeper), std::vector<std::string>{"train-1"});
}

TEST_F(HistoryKeeperTest, AFileFromAFlagMustBeUsable) {
  HistoryKeeper keeper(Options("none/history.db"));
  const absl::Status status = keeper.Start();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--history=FILE"));
}

TEST_F(HistoryKeeperTest, EndsInTimeAndLogsWhatItCouldNotSave) {
  HistoryKeeper keeper(Options());
  ASSERT_TRUE(keeper.Start().ok());
  keeper.Save(Incident(1, 1000));
  ASSERT_TRUE(Eventually([&] { return IsSaved(keeper); }));
  const Lock lock(folder_ / "history.db");
  keeper.Save(Incident(2, 2000));
  testing::internal::CaptureStdout();
  const auto begun = steady_clock::now();
  keeper.Finish(begun + seconds(1));
  EXPECT_LT(steady_clock::now() - begun, kPatience);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("cannot save 1 incident"));
  EXPECT_EQ(keeper.counts().lost, 1u);
}

TEST_F(HistoryKeeperTest, DropsUnconfirmedIncidentsFirst) {
  HistoryKeeperOptions options = Options("later/history.db");
  options.is_optional = true;
  options.most_waiting = 2;
  HistoryKeeper keeper(options);
  ASSERT_TRUE(keeper.Start().ok());
  keeper.Save(Incident(1, 1000));
  v1::Incident suspected = Incident(2, 2000);
  suspected.clear_confirmed_at();
  keeper.Save(suspected);
  keeper.Save(Incident(3, 3000));
  EXPECT_EQ(keeper.counts().lost, 1u);
  EXPECT_FALSE(keeper.Get("train-2").ok());
  EXPECT_TRUE(keeper.Get("train-1").ok());
}

TEST_F(HistoryKeeperTest, LetsOnlyOwnerAndGroupReadItsFiles) {
  std::ofstream(folder_ / "history.db").flush();
  fs::permissions(folder_ / "history.db", fs::perms(0666));
  HistoryKeeper keeper(Options());
  ASSERT_TRUE(keeper.Start().ok());
  keeper.Save(Incident(1, 1000));
  ASSERT_TRUE(Eventually([&] { return IsSaved(keeper); }));
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    ++files;
    struct stat info = {};
    stat(entry.path().c_str(), &info);
    EXPECT_EQ(info.st_mode & 0777 & ~0640u, 0u) << entry.path();
  }
  EXPECT_EQ(files, 3);  // -wal and -shm
}

AlertRow Alert(const std::string& incident) {
  AlertRow alert;
  alert.incident = incident;
  alert.sequence = 1;
  alert.kind = "confirmed";
  return alert;
}

TEST_F(HistoryKeeperTest, KeepsAlertsAndHostsUntilTheDiskTakesThem) {
  std::atomic<bool> is_saved = false;
  {
    HistoryKeeper keeper(Options());
    ASSERT_TRUE(keeper.Start().ok());
    const auto outbox = keeper.outbox();
    {
      const Lock lock(folder_ / "history.db");
      outbox->Save(Alert("train-1"), [&is_saved] { is_saved = true; });
      keeper.Apply(WriteOfHosts(JobKey("train"), {"a"}, 5));
      EXPECT_EQ(keeper.counts().waiting, 2u);
      EXPECT_FALSE(is_saved);
    }
    ASSERT_TRUE(Eventually([&] { return IsSaved(keeper) && is_saved; }));
  }
  HistoryKeeper next(Options());
  ASSERT_TRUE(next.Start().ok());
  const auto kept = next.ConsumeContinuation();
  ASSERT_TRUE(kept.has_value());
  ASSERT_EQ(kept->alerts.size(), 1u);
  EXPECT_EQ(kept->alerts[0].incident, "train-1");
  EXPECT_FALSE(next.ConsumeContinuation().has_value());
}

TEST_F(HistoryKeeperTest, AwaitsWhatItWasGivenUntilItIsInTheFile) {
  HistoryKeeper keeper(Options());
  ASSERT_TRUE(keeper.Start().ok());
  v1::Silence silence;
  silence.set_id("s1");
  silence.mutable_until()->set_seconds(int64_t{1} << 33);
  {
    const Lock lock(folder_ / "history.db");
    keeper.Apply(WriteOfSilence(silence));
    EXPECT_FALSE(keeper.AwaitSaved(50'000'000));
  }
  EXPECT_TRUE(keeper.AwaitSaved(std::chrono::nanoseconds(kPatience).count()));
  const auto history = SqliteHistory::OpenToRead(folder_ / "history.db");
  ASSERT_TRUE(history.ok());
  EXPECT_EQ((*history)->Load()->silences.size(), 1u);
}

TEST_F(HistoryKeeperTest, SavesANewerStateBeforeAnAlertOfTheOlderOne) {
  HistoryKeeper keeper(Options());
  ASSERT_TRUE(keeper.Start().ok());
  std::string state_then;
  std::atomic<bool> is_saved = false;
  {
    const Lock lock(folder_ / "history.db");
    keeper.Save(Incident(1, 1000, "suspected"));
    keeper.outbox()->Save(Alert("train-1"), [&] {
      const auto history = SqliteHistory::OpenToRead(folder_ / "history.db");
      if (history.ok()) state_then = (*history)->Get("train-1")->state();
      is_saved = true;
    });
    keeper.Save(Incident(1, 1000, "confirmed"));
  }
  ASSERT_TRUE(Eventually([&] { return is_saved.load(); }));
  EXPECT_EQ(state_then, "confirmed");
}

}  // namespace
}  // namespace rollcall

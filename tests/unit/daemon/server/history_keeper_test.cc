// SPDX-License-Identifier: Apache-2.0
// The history on disks that are full, files that are locked, damaged or gone.
#include "daemon/server/history_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "small_disk.h"
#include "eventually.h"

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

// Somebody else's transaction on the file.
class Lock {
 public:
  explicit Lock(const std::string& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &db_), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  }
  ~Lock() { sqlite3_close(db_); }

 private:
  sqlite3* db_ = nullptr;
};

class HistoryKeeperTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/rollcall-keeper-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    folder_ = path;
  }
  void TearDown() override { fs::remove_all(folder_); }

  HistoryKeeperOptions Options(const fs::path& file = "history.db") const {
    HistoryKeeperOptions options;
    options.path = folder_ / file;
    options.first_pause_ns = 20'000'000;
    options.longest_pause_ns = 100'000'000;
    options.limits.keep_ns = int64_t{1} << 62;  // the incidents are of 1970
    return options;
  }
  static bool IsSaved(const HistoryKeeper& keeper) { return keeper.counts().waiting == 0; }

  fs::path folder_;
};

TEST_F(HistoryKeeperTest, ListsWhatIsSavedAndWhatWaitsOnce) {
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
  EXPECT_EQ(keeper.LastNumber("train"), 3);
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

TEST_F(HistoryKeeperTest, BeginsAnewWhenTheFileIsDamagedAndWantsAllAgain) {
  HistoryKeeper keeper(Options());
  ASSERT_TRUE(keeper.Start().ok());
  keeper.Save(Incident(1, 1000));
  ASSERT_TRUE(Eventually([&] { return IsSaved(keeper); }));
  EXPECT_FALSE(keeper.TakeBegunAnew());
  // Under its hands: both the file and what SQLite has not moved into it yet.
  for (const char* part : {"history.db", "history.db-wal"}) {
    std::fstream file(folder_ / part, std::ios::in | std::ios::out);
    file << std::string(fs::file_size(folder_ / part), 'x');
  }
  for (int i = 2; i < 20; ++i) keeper.Save(Incident(i, 1000 * i));
  // Whoever meets the damage first, writer or reader.
  EXPECT_TRUE(Eventually([&] {
    (void)keeper.List({}, {});
    return keeper.TakeBegunAnew();
  }));
  EXPECT_TRUE(Eventually([&] { return IsSaved(keeper); }));
  keeper.Save(Incident(20, 20'000));
  EXPECT_TRUE(Eventually([&] { return IsSaved(keeper); }));
  EXPECT_EQ(Ids(keeper).front(), "train-20");
}

TEST_F(HistoryKeeperTest, BeginsAnewWhenTheFileIsRemoved) {
  HistoryKeeper keeper(Options());
  ASSERT_TRUE(keeper.Start().ok());
  keeper.Save(Incident(1, 1000));
  ASSERT_TRUE(Eventually([&] { return IsSaved(keeper); }));
  for (const auto& entry : fs::directory_iterator(folder_)) fs::remove(entry.path());
  keeper.Save(Incident(2, 2000));
  EXPECT_TRUE(Eventually([&] { return keeper.TakeBegunAnew(); }));
  EXPECT_TRUE(Eventually([&] { return IsSaved(keeper); }));
  EXPECT_TRUE(fs::exists(folder_ / "history.db"));
}

TEST_F(HistoryKeeperTest, AnOptionalFileMayBecomeUsableLater) {
  HistoryKeeperOptions options = Options("later/history.db");
  options.is_optional = true;
  HistoryKeeper keeper(options);
  ASSERT_TRUE(keeper.Start().ok());
  keeper.Save(Incident(1, 1000));
  EXPECT_FALSE(keeper.List({}, {}).ok());  // whoever asks has to do without
  EXPECT_EQ(keeper.Get("train-1")->job(), "train");
  fs::create_directories(folder_ / "later");
  EXPECT_TRUE(Eventually([&] { return IsSaved(keeper); }));
  EXPECT_EQ(Ids(keeper), std::vector<std::string>{"train-1"});
}

TEST_F(HistoryKeeperTest, AFileThatSomebodyAskedForMustBeUsable) {
  HistoryKeeper keeper(Options("none/history.db"));
  const absl::Status status = keeper.Start();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--history=FILE"));
}

TEST_F(HistoryKeeperTest, EndsInTimeAndSaysWhatItCouldNotSave) {
  HistoryKeeper keeper(Options());
  ASSERT_TRUE(keeper.Start().ok());
  keeper.Save(Incident(1, 1000));
  ASSERT_TRUE(Eventually([&] { return IsSaved(keeper); }));
  const Lock lock(folder_ / "history.db");
  keeper.Save(Incident(2, 2000));
  testing::internal::CaptureStdout();
  const auto begun = steady_clock::now();
  keeper.Finish(begun + seconds(1));
  EXPECT_LT(steady_clock::now() - begun, seconds(3));
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("1 incident was not saved"));
  EXPECT_EQ(keeper.counts().lost, 1u);
}

TEST_F(HistoryKeeperTest, DropsWhatIsNotConfirmedFirst) {
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
  EXPECT_FALSE(keeper.Get("train-2").has_value());
  EXPECT_TRUE(keeper.Get("train-1").has_value());
}

TEST_F(HistoryKeeperTest, KeepsOthersOutOfTheFileAndOfWhatLiesBesideIt) {
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

}  // namespace
}  // namespace rollcall

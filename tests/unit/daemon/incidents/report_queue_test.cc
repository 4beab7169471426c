// SPDX-License-Identifier: Apache-2.0
// Reports on disks that are full, read-only, removed or dead.
#include "daemon/incidents/report_queue.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/time/clock.h"
#include "base/descriptors.h"
#include "base/read_file.h"
#include "eventually.h"
#include "small_disk.h"
#include "temporary_tree.h"

namespace {
std::atomic<bool> disk_is_busy{false};
std::atomic<int> failing_syncs{0};
}  // namespace

// Replaces the C library's: waits while the disk is busy, and fails as often as a test wants.
extern "C" int fsync(int fd) {
  while (disk_is_busy) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (failing_syncs > 0) {
    --failing_syncs;
    errno = EIO;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace rollcall {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;
using testing::HasSubstr;

v1::Incident Incident(const std::string& id = "train-1") {
  v1::Incident incident;
  incident.set_id(id);
  incident.set_job("train");
  incident.set_state("confirmed");
  incident.mutable_confirmed_at()->set_seconds(1'700'000'000);
  incident.add_verdicts()->set_cause("missing_rank");
  incident.mutable_verdicts(0)->set_summary("rank 3 has not come");
  return incident;
}

std::string ReadAll(const fs::path& path) { return ReadFile(path).value_or(""); }

class ReportQueueTest : public testing::Test {
 protected:
  ReportQueueOptions Options(const fs::path& below = "reports") const {
    ReportQueueOptions options;
    options.report_dir = folder_ / below;
    options.retry = {20'000'000, 100'000'000};
    return options;
  }
  // Waits for a report that was written or given up.
  static ReportQueue::Result Next(ReportQueue* queue) {
    std::vector<ReportQueue::Result> all;
    EXPECT_TRUE(Eventually([&] { return !(all = queue->DrainResults()).empty(); }));
    return all.empty() ? ReportQueue::Result() : all.front();
  }

  // The thread that writes to the FIFO, and that its queue has left behind, ends when it can write.
  static void ExpectThreadEnds(const fs::path& fifo) {
    const int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
    EXPECT_TRUE(Eventually([] { return live_loose_threads.load() == 0; }));
    close(reader);
  }

  const TemporaryTree tree_;
  const fs::path folder_ = tree_.root();
};

TEST_F(ReportQueueTest, WritesTheNewestStateOfAnIncidentIntoOneFolder) {
  ReportQueue queue(Options());
  queue.Put(Incident(), "");
  const std::string folder = Next(&queue).folder;
  v1::Incident newer = Incident();
  newer.mutable_verdicts(0)->set_summary("rank 3 is in validate()");
  queue.Put(newer, folder);
  EXPECT_EQ(Next(&queue).folder, folder);
  EXPECT_THAT(ReadAll(fs::path(folder) / "report.txt"), HasSubstr("in validate()"));
  EXPECT_EQ(queue.counts().written, 2u);
}

TEST_F(ReportQueueTest, WritesManyStatesIntoOneFolderEvenBeforeThePathIsKnown) {
  ReportQueue queue(Options());
  for (int i = 0; i < 50; ++i) queue.Put(Incident(), "");
  queue.Finish(steady_clock::now() + kPatience);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "reports"), {}), 1);
}

TEST_F(ReportQueueTest, LetsOnlyOwnerAndGroupReadReports) {
  ReportQueue queue(Options());
  queue.Put(Incident(), "");
  const fs::path report = Next(&queue).folder;
  const auto mode = [](const fs::path& path) {
    struct stat info = {};
    stat(path.c_str(), &info);
    return info.st_mode & 0777;
  };
  EXPECT_EQ(mode(folder_ / "reports") & ~0750u, 0u);
  EXPECT_EQ(mode(report) & ~0750u, 0u);
  for (const auto& file : fs::directory_iterator(report)) {
    EXPECT_EQ(mode(file.path()) & ~0640u, 0u) << file.path();
  }
}

TEST_F(ReportQueueTest, WritesWhenAFullDiskHasRoomAgainAndSaysHowLate) {
  const SmallDisk disk(folder_ / "disk");
  if (!disk.problem().empty()) GTEST_SKIP() << disk.problem();
  disk.Fill();
  ReportQueueOptions options = Options("disk/reports");
  options.late_after_ns = 1;
  ReportQueue queue(options);
  queue.Put(Incident(), "");
  ASSERT_TRUE(Eventually([&] { return queue.counts().failed > 2; }));
  EXPECT_THAT(queue.FindProblem("train-1", 0), HasSubstr("No space left on device"));
  EXPECT_EQ(queue.FindProblem("train-1", 3600'000'000'000), "");
  disk.Free();
  const ReportQueue::Result written = Next(&queue);
  EXPECT_THAT(written.note, HasSubstr("after the hang was confirmed: cannot "));
  EXPECT_THAT(written.note, HasSubstr("No space left on device"));
  EXPECT_THAT(ReadAll(fs::path(written.folder) / "report.txt"), HasSubstr("No space left"));
  EXPECT_EQ(queue.FindProblem("train-1", 0), "");
  EXPECT_EQ(queue.counts().waiting, 0u);
}

TEST_F(ReportQueueTest, WritesWhenAReadOnlyDiskCanBeWrittenAgain) {
  const SmallDisk disk(folder_ / "disk");
  if (!disk.problem().empty()) GTEST_SKIP() << disk.problem();
  ASSERT_TRUE(disk.SetReadOnly(true));
  ReportQueue queue(Options("disk/reports"));
  queue.Put(Incident(), "");
  ASSERT_TRUE(Eventually([&] { return queue.counts().failed > 2; }));
  EXPECT_THAT(queue.FindProblem("train-1", 0), HasSubstr("Read-only file system"));
  ASSERT_TRUE(disk.SetReadOnly(false));
  EXPECT_NE(Next(&queue).folder, "");
}

TEST_F(ReportQueueTest, WritesWhenAFolderAppearsLater) {
  std::ofstream(folder_ / "place") << "not a folder";
  ReportQueue queue(Options("place/reports"));
  queue.Put(Incident(), "");
  ASSERT_TRUE(Eventually([&] { return queue.counts().failed > 1; }));
  fs::remove(folder_ / "place");
  EXPECT_NE(Next(&queue).folder, "");
}

TEST_F(ReportQueueTest, RewritesADeletedReport) {
  ReportQueue queue(Options());
  queue.Put(Incident(), "");
  const std::string first = Next(&queue).folder;
  fs::remove_all(folder_ / "reports");
  queue.Put(Incident(), first);
  EXPECT_TRUE(fs::exists(fs::path(Next(&queue).folder) / "incident.json"));
}

TEST_F(ReportQueueTest, HasADescriptorWhenOthersHaveUsedThemUp) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UndefinedBehaviorSanitizer looks at objects through a pipe, and needs "
                  "descriptors";
#endif
  ReportQueue queue(Options());
  std::vector<int> all;
  for (int fd = 0; (fd = dup(0)) >= 0;) all.push_back(fd);
  ASSERT_EQ(errno, EMFILE);
  queue.Put(Incident(), "");
  ASSERT_TRUE(Eventually([&] { return queue.counts().written + queue.counts().failed > 0; }));
  EXPECT_EQ(queue.counts().failed, 0u);
  for (const int fd : all) close(fd);
  EXPECT_TRUE(fs::exists(fs::path(Next(&queue).folder) / "report.html"));
}

// A FIFO stands for a dead file server: opening it to write waits for a reader.
TEST_F(ReportQueueTest, ADeadDiskDelaysNoOtherThread) {
  auto queue = std::make_unique<ReportQueue>(Options());
  queue->Put(Incident(), "");
  const fs::path report = Next(queue.get()).folder;
  ASSERT_EQ(mkfifo((report / ".stacks.txt.new").c_str(), 0600), 0);
  queue->Put(Incident(), report);
  queue->Put(Incident("train-2"), "");
  EXPECT_TRUE(Eventually([&] {
    return queue->FindProblem("train-2", 0) == "not written yet: the disk does not respond";
  }));
  testing::internal::CaptureStdout();
  const auto begun = steady_clock::now();
  queue->Finish(begun + std::chrono::milliseconds(300));
  EXPECT_LT(steady_clock::now() - begun, kPatience);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("cannot write 2 reports"));
  EXPECT_EQ(queue->counts().lost, 2u);
  queue.reset();
  ExpectThreadEnds(report / ".stacks.txt.new");
}

TEST_F(ReportQueueTest, ANewerStateBehindADeadDiskIsLostOnce) {
  ReportQueue queue(Options());
  queue.Put(Incident(), "");
  const fs::path report = Next(&queue).folder;
  const std::string fifo = report / ".stacks.txt.new";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  queue.Put(Incident(), report);
  // Until the first state is being written, and another one waits.
  for (int i = 0; i < 20; ++i) {
    queue.Put(Incident(), report);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(queue.counts().waiting, 1u);
  testing::internal::CaptureStdout();
  queue.Finish(steady_clock::now() + std::chrono::milliseconds(300));
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("cannot write 1 report"));
  EXPECT_EQ(queue.counts().lost, 1u);
  ExpectThreadEnds(fifo);
}

// A run must not lose its report because others write to the disk.
TEST_F(ReportQueueTest, ABusyDiskDelaysNoReport) {
  disk_is_busy = true;
  ReportQueue queue(Options());
  queue.Put(Incident(), "");
  const fs::path report = Next(&queue).folder;
  v1::Incident newer = Incident();
  newer.mutable_closed_at()->set_seconds(1'700'000'100);
  queue.Put(newer, report);
  EXPECT_TRUE(Eventually(
      [&] { return ReadAll(report / "incident.json").find("closed_at") != std::string::npos; }));
  testing::internal::CaptureStdout();
  queue.Finish(steady_clock::now() + std::chrono::milliseconds(300));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(queue.counts().lost, 0u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "reports"), {}), 1);
  disk_is_busy = false;
  EXPECT_TRUE(Eventually([] { return live_loose_threads.load() == 0; }));
}

TEST_F(ReportQueueTest, WritesAgainWhatTheDiskDidNotTake) {
  failing_syncs = 1;
  ReportQueue queue(Options());
  queue.Put(Incident(), "");
  EXPECT_TRUE(Eventually([&] { return queue.counts().written == 2; }));
  EXPECT_EQ(queue.counts().failed, 1u);
  const std::vector<ReportQueue::Result> both = queue.DrainResults();
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].folder, both[1].folder);
}

TEST_F(ReportQueueTest, RemovesAtItsStartWhatKilledWritersHaveLeftOver) {
  const fs::path left_over = folder_ / "reports" / ".rollcall-a1B2c3";
  fs::create_directories(left_over);
  std::ofstream(left_over / "stacks.txt") << "half";
  ReportQueue queue(Options());
  EXPECT_TRUE(Eventually([&] { return !fs::exists(left_over); }));
}

TEST_F(ReportQueueTest, ALostReportHasAReason) {
  std::ofstream(folder_ / "place") << "not a folder";
  ReportQueueOptions options = Options("place/reports");
  options.retry.first_ns = 3600'000'000'000;
  ReportQueue queue(options);
  queue.Put(Incident(), "");
  ASSERT_TRUE(Eventually([&] { return queue.counts().failed == 1; }));
  queue.Finish(steady_clock::now() + kPatience);
  EXPECT_EQ(queue.counts().failed, 2u);  // one more try, whatever the pause
  EXPECT_EQ(queue.counts().lost, 1u);
  const ReportQueue::Result given_up = Next(&queue);
  EXPECT_EQ(given_up.folder, "");
  EXPECT_THAT(given_up.note, HasSubstr("not written: cannot create the report folder"));
}

TEST_F(ReportQueueTest, CountsAndLogsDroppedReports) {
  std::ofstream(folder_ / "place") << "not a folder";
  ReportQueueOptions options = Options("place/reports");
  options.retry.first_ns = 3600'000'000'000;
  options.most_waiting = 3;
  ReportQueue queue(options);
  testing::internal::CaptureStdout();
  for (int i = 0; i < 5; ++i) {
    queue.Put(Incident("train-" + std::to_string(i)), "");
    ASSERT_TRUE(Eventually([&] { return queue.counts().failed == uint64_t(i) + 1; }));
  }
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("dropped the report of train-0"));
  EXPECT_LE(queue.counts().waiting, 4u);
  EXPECT_GE(queue.counts().lost, 1u);
}

// Folders of closed incidents, the first one the oldest.
class OldReportsTest : public ReportQueueTest {
 protected:
  std::string Write(int days_old, bool is_closed = true) {
    const std::string id = "train-" + std::to_string(++written_);
    v1::Incident incident = Incident(id);
    if (is_closed) incident.mutable_closed_at()->set_seconds(1'700'000'100);
    ReportQueue queue(Options());
    queue.Put(incident, "");
    const std::string folder = Next(&queue).folder;
    Age(folder, days_old);
    return folder;
  }
  static void Age(const std::string& folder, int days) {
    fs::last_write_time(folder + "/incident.json",
                        fs::file_time_type::clock::now() - std::chrono::hours(24 * days));
  }
  DeletedReports Delete(const ReportLimits& limits, const std::string& live = "") {
    return DeleteOldReports(Options().report_dir, limits, absl::GetCurrentTimeNanos(),
                            [&](const std::string& id) { return id == live; });
  }
  static constexpr int64_t kDay = int64_t{86400} * 1'000'000'000;

 private:
  int written_ = 0;
};

TEST_F(OldReportsTest, DeletesTheOldestByAgeCountAndSize) {
  const std::string oldest = Write(30), older = Write(20), newer = Write(10), newest = Write(0);
  EXPECT_EQ(Delete({25 * kDay, 0, 0}).count, 1u);
  EXPECT_FALSE(fs::exists(oldest));
  EXPECT_EQ(Delete({0, 2, 0}).count, 1u);
  EXPECT_FALSE(fs::exists(older));
  EXPECT_TRUE(fs::exists(newer));
  EXPECT_EQ(Delete({0, 0, 1}).count, 2u);
  EXPECT_FALSE(fs::exists(newest));
}

TEST_F(OldReportsTest, WithoutALimitNothingIsDeleted) {
  const std::string folder = Write(3000);
  EXPECT_EQ(Delete({}).count, 0u);
  EXPECT_TRUE(fs::exists(folder));
}

TEST_F(OldReportsTest, KeepsTheReportsOfLiveIncidents) {
  const std::string live = Write(30), open = Write(3, false), forgotten = Write(30, false);
  EXPECT_EQ(Delete({kDay, 0, 0}, "train-1").count, 1u);
  EXPECT_TRUE(fs::exists(live));
  EXPECT_TRUE(fs::exists(open));
  EXPECT_FALSE(fs::exists(forgotten));
}

TEST_F(OldReportsTest, KeepsFoldersAndFilesOfOthers) {
  const std::string ours = Write(30);
  std::ofstream(ours + "/notes.txt") << "mine";
  const std::string copied = Write(30);
  fs::rename(copied, copied + "-copy");
  const fs::path foreign = fs::path(Options().report_dir) / "thesis";
  fs::create_directories(foreign);
  std::ofstream(foreign / "incident.json") << "{\"id\": 7}";
  Age(foreign, 30);
  const fs::path elsewhere = folder_ / "elsewhere";
  fs::rename(Write(30), elsewhere);
  fs::create_directory_symlink(elsewhere, fs::path(Options().report_dir) / "link");
  EXPECT_EQ(Delete({kDay, 0, 0}).count, 1u);
  EXPECT_TRUE(fs::exists(ours + "/notes.txt"));
  EXPECT_FALSE(fs::exists(ours + "/report.txt"));
  EXPECT_TRUE(fs::exists(copied + "-copy/report.txt"));
  EXPECT_TRUE(fs::exists(foreign / "incident.json"));
  EXPECT_TRUE(fs::exists(elsewhere / "report.txt"));
}

TEST_F(OldReportsTest, TheQueueDeletesAtItsStartAndAgainLater) {
  const std::string first = Write(30);
  ReportQueueOptions options = Options();
  options.keep.keep_ns = kDay;
  options.delete_every_ns = 10'000'000;
  ReportQueue queue(options);
  EXPECT_TRUE(Eventually([&] { return !fs::exists(first); }));
  const std::string second = Write(30);
  EXPECT_TRUE(Eventually([&] { return !fs::exists(second); }));
  EXPECT_TRUE(Eventually([&] { return queue.counts().deleted == 2; }));
}

// A kill -9 came between the report and its path, and the cause has changed since.
TEST_F(ReportQueueTest, ARestartedDaemonUpdatesTheReportWhosePathIsLost) {
  ReportQueueOptions options = Options();
  options.continues_reports = true;
  v1::Incident incident = Incident();
  incident.mutable_opened_at()->set_seconds(1'699'999'990);
  incident.mutable_opened_at()->set_nanos(5);
  std::string folder;
  {
    ReportQueue queue(options);
    queue.Put(incident, "");
    folder = Next(&queue).folder;
  }
  incident.mutable_confirmed_at()->set_seconds(1'700'000'010);
  incident.mutable_verdicts(0)->set_cause("rank_died");
  ReportQueue queue(options);
  queue.Put(incident, "");
  EXPECT_EQ(Next(&queue).folder, folder);
  EXPECT_THAT(ReadAll(fs::path(folder) / "incident.json"), HasSubstr("rank_died"));
  incident.mutable_opened_at()->set_nanos(6);
  ReportQueue third(options);
  third.Put(incident, "");
  EXPECT_NE(Next(&third).folder, folder) << "another daemon's incident of this id";
}

}  // namespace
}  // namespace rollcall

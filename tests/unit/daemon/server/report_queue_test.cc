// SPDX-License-Identifier: Apache-2.0
// Reports on disks that are full, read-only, gone or dead.
#include "daemon/server/report_queue.h"

#include <gmock/gmock.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "daemon/server/descriptors.h"
#include "small_disk.h"
#include "eventually.h"

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

std::string ReadAll(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class ReportQueueTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/rollcall-queue-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    folder_ = path;
  }
  void TearDown() override { fs::remove_all(folder_); }

  ReportQueueOptions Options(const fs::path& below = "reports") const {
    ReportQueueOptions options;
    options.report_dir = folder_ / below;
    options.first_pause_ns = 20'000'000;
    options.longest_pause_ns = 100'000'000;
    return options;
  }
  // What was written, or given up, as soon as there is something.
  static ReportQueue::Written Next(ReportQueue* queue) {
    std::vector<ReportQueue::Written> all;
    EXPECT_TRUE(Eventually([&] { return !(all = queue->TakeWritten()).empty(); }));
    return all.empty() ? ReportQueue::Written() : all.front();
  }

  fs::path folder_;
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

TEST_F(ReportQueueTest, OfManyStatesOneFolderComesEvenBeforeThePathIsKnown) {
  ReportQueue queue(Options());
  for (int i = 0; i < 50; ++i) queue.Put(Incident(), "");
  queue.Finish(steady_clock::now() + std::chrono::seconds(10));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "reports"), {}), 1);
}

TEST_F(ReportQueueTest, KeepsOthersOut) {
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

TEST_F(ReportQueueTest, WritesWhenAFullDiskHasRoomAgainAndSaysHowLateThatIs) {
  const SmallDisk disk(folder_ / "disk");
  if (!disk.problem().empty()) GTEST_SKIP() << disk.problem();
  disk.Fill();
  ReportQueue queue(Options("disk/reports"));
  queue.Put(Incident(), "");
  ASSERT_TRUE(Eventually([&] { return queue.counts().failed > 2; }));
  EXPECT_THAT(queue.FindProblem("train-1", 0), HasSubstr("No space left on device"));
  EXPECT_EQ(queue.FindProblem("train-1", 3600'000'000'000), "");
  std::this_thread::sleep_for(std::chrono::milliseconds(5200));  // what is worth a word
  disk.Free();
  const ReportQueue::Written written = Next(&queue);
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

TEST_F(ReportQueueTest, WritesAReportAnewThatSomebodyHasDeleted) {
  ReportQueue queue(Options());
  queue.Put(Incident(), "");
  const std::string first = Next(&queue).folder;
  fs::remove_all(folder_ / "reports");
  queue.Put(Incident(), first);
  EXPECT_TRUE(fs::exists(fs::path(Next(&queue).folder) / "incident.json"));
}

TEST_F(ReportQueueTest, HasADescriptorWhenOthersHaveUsedThemUp) {
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

// As a file server that is gone: whoever opens a FIFO to write waits for its reader.
TEST_F(ReportQueueTest, ADiskThatDoesNotAnswerHoldsUpNobodyAndIsSaid) {
  auto queue = std::make_unique<ReportQueue>(Options());
  queue->Put(Incident(), "");
  const fs::path report = Next(queue.get()).folder;
  ASSERT_EQ(mkfifo((report / ".stacks.txt.new").c_str(), 0600), 0);
  queue->Put(Incident(), report);
  queue->Put(Incident("train-2"), "");
  EXPECT_TRUE(Eventually([&] {
    return queue->FindProblem("train-2", 0) == "not written yet: the disk does not answer";
  }));
  testing::internal::CaptureStdout();
  const auto begun = steady_clock::now();
  queue->Finish(begun + std::chrono::milliseconds(300));
  EXPECT_LT(steady_clock::now() - begun, std::chrono::seconds(2));
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("2 reports were not written"));
  EXPECT_EQ(queue->counts().lost, 2u);
  // The thread that is left behind comes back, and finds nobody.
  queue.reset();
  const int reader = open((report / ".stacks.txt.new").c_str(), O_RDONLY | O_NONBLOCK);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  close(reader);
}

TEST_F(ReportQueueTest, AnIncidentWhoseNewerStateWaitsBehindADeadDiskIsLostOnce) {
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
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("1 report was not written"));
  EXPECT_EQ(queue.counts().lost, 1u);
  // The thread that is left behind comes back, and finds nobody.
  const int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  close(reader);
}

TEST_F(ReportQueueTest, WhatIsNotWrittenWhenItEndsHasItsReason) {
  std::ofstream(folder_ / "place") << "not a folder";
  ReportQueueOptions options = Options("place/reports");
  options.first_pause_ns = 3600'000'000'000;
  ReportQueue queue(options);
  queue.Put(Incident(), "");
  ASSERT_TRUE(Eventually([&] { return queue.counts().failed == 1; }));
  queue.Finish(steady_clock::now() + std::chrono::seconds(10));
  EXPECT_EQ(queue.counts().failed, 2u);  // one more try, whatever the pause
  EXPECT_EQ(queue.counts().lost, 1u);
  const ReportQueue::Written given_up = Next(&queue);
  EXPECT_EQ(given_up.folder, "");
  EXPECT_THAT(given_up.note, HasSubstr("not written: cannot create the report folder"));
}

TEST_F(ReportQueueTest, WhatDoesNotFitIsCountedAndSaid) {
  std::ofstream(folder_ / "place") << "not a folder";
  ReportQueueOptions options = Options("place/reports");
  options.first_pause_ns = 3600'000'000'000;
  options.most_waiting = 3;
  ReportQueue queue(options);
  testing::internal::CaptureStdout();
  for (int i = 0; i < 5; ++i) {
    queue.Put(Incident("train-" + std::to_string(i)), "");
    ASSERT_TRUE(Eventually([&] { return queue.counts().failed == uint64_t(i) + 1; }));
  }
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              HasSubstr("the report of train-0 is given up"));
  EXPECT_LE(queue.counts().waiting, 4u);
  EXPECT_GE(queue.counts().lost, 1u);
}

}  // namespace
}  // namespace rollcall

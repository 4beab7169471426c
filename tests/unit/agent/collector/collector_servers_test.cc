// SPDX-License-Identifier: Apache-2.0
// A collector whose folder is on a file server that does not answer.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "agent/collector/collector.h"
#include "base/durations.h"
#include "collector_fixture.h"
#include "eventually.h"
#include "file_server.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

// Whether this process has the file open.
bool IsOpen(const std::string& path) {
  for (const fs::directory_entry& descriptor : fs::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    if (fs::read_symlink(descriptor.path(), closed) == path) return true;
  }
  return false;
}

// The folder is on a file server that stops at the first request of one kind.
class DeadServerTest : public CollectorTest {
 protected:
  void Serve(const Child& child) {
    segment_.AddComm(5, 0, 2);
    segment_.BelongTo(child.pid(), child.start_time());
    const std::string name = fs::path(SegmentPath(&segment_)).filename();
    server_ = std::make_unique<FileServer>(folder_, name, segment_.bytes());
  }
  void TearDown() override {
    server_ = nullptr;
    CollectorTest::TearDown();
  }
  CollectorOptions Keeping(int64_t keep_ended_ns) const {
    CollectorOptions options = Options();
    options.least_read_wait_ns = 0;  // the server answers never
    options.keep_ended_ns = keep_ended_ns;
    return options;
  }
  // Collects a tick one second after the last one.
  v1::Tick CollectNext(Collector* collector) {
    now_ns_ += kSecond;
    return collector->Collect(now_ns_, true);
  }
  // A tick leaves a file that answers slowly to the next tick.
  bool Finds(Collector* collector, int processes) {
    return Eventually([=] { return CollectNext(collector).processes_size() == processes; });
  }
  // Whether the tick ended while the server did not answer.
  bool TickEnds(Collector* collector) {
    std::promise<void> done;
    std::future<void> ended = done.get_future();
    std::thread watchdog([&] {
      if (ended.wait_for(kPatience) != std::future_status::ready) server_->Kill();
    });
    CollectNext(collector);
    done.set_value();
    watchdog.join();
    return server_->IsThere();
  }
  // Whether ticks make the server stop, and all of them end, also after that.
  bool TicksStopTheServer(Collector* collector) {
    const auto has_stopped = [&] { return server_->HasStopped() || !TickEnds(collector); };
    return Eventually(has_stopped) && server_->IsThere() && TickEnds(collector);
  }

  int64_t now_ns_ = 0;
  std::unique_ptr<FileServer> server_;
};

TEST_F(DeadServerTest, DeletingAFileBlocksNoTick) {
  Child child;
  Serve(child);
  if (!server_->problem().empty()) GTEST_SKIP() << server_->problem();
  server_->StopAt(FUSE_UNLINK);
  Collector collector(Keeping(10 * kSecond));
  ASSERT_TRUE(Finds(&collector, 1));
  child.Exit(0);
  EXPECT_TRUE(TicksStopTheServer(&collector)) << "no request to delete the file";
  server_->GoOn();
  EXPECT_TRUE(Eventually([this] { return !fs::exists(SegmentPath(&segment_)); }));
  EXPECT_TRUE(Finds(&collector, 0));
}

// FUSE and other file systems send a request to the server when a file is closed.
TEST_F(DeadServerTest, ClosingAFileBlocksNoTick) {
  Child child;
  Serve(child);
  if (!server_->problem().empty()) GTEST_SKIP() << server_->problem();
  Collector collector(Keeping(10 * kSecond));
  ASSERT_TRUE(Finds(&collector, 1));
  server_->StopAt(FUSE_FLUSH);
  child.Exit(0);
  EXPECT_TRUE(TicksStopTheServer(&collector)) << "no request to close the file";
}

TEST_F(DeadServerTest, TestingWhetherAFileWasDeletedBlocksNoTick) {
  const Child child;
  Serve(child);
  if (!server_->problem().empty()) GTEST_SKIP() << server_->problem();
  Collector collector(Keeping(0));
  ASSERT_TRUE(Finds(&collector, 1));
  server_->StopAt(FUSE_GETATTR);
  EXPECT_TRUE(TicksStopTheServer(&collector)) << "no request for its attributes";
}

TEST_F(DeadServerTest, AReadThatReturnsAfterTheStopClosesItsFile) {
  const Child child;
  Serve(child);
  if (!server_->problem().empty()) GTEST_SKIP() << server_->problem();
  auto collector = std::make_unique<Collector>(Keeping(0));
  ASSERT_TRUE(Finds(collector.get(), 1));
  EXPECT_TRUE(IsOpen(SegmentPath(&segment_)));
  server_->StopAt(FUSE_GETATTR);
  EXPECT_TRUE(TicksStopTheServer(collector.get())) << "no request for its attributes";
  collector.reset();
  EXPECT_TRUE(IsOpen(SegmentPath(&segment_))) << "the read is over already";
  server_->Kill();
  EXPECT_TRUE(Eventually([this] { return !IsOpen(SegmentPath(&segment_)); }));
}

}  // namespace
}  // namespace rollcall

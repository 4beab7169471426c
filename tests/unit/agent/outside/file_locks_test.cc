// SPDX-License-Identifier: Apache-2.0
// The locks of files that real processes hold and wait for.
#include "agent/outside/file_locks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "agent/outside/lock_table.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/proc_stat.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "eventually.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

constexpr char kTable[] =
    "1: FLOCK  ADVISORY  WRITE 4121 08:01:100 0 EOF\n"
    "1: -> FLOCK  ADVISORY  WRITE 4122 08:01:100 0 EOF\n"
    "1:  -> FLOCK  ADVISORY  READ 4123 08:01:100 0 EOF\n"
    "2: POSIX  ADVISORY  READ 4124 08:01:101 128 128\n"
    "3: LEASE  ACTIVE    READ 4125 08:01:102 0 EOF\n"
    "4: OFDLCK ADVISORY  WRITE -1 fe:00:103 0 EOF\n"
    "4: -> OFDLCK ADVISORY  WRITE -1 fe:00:103 0 EOF\n"
    "5: FLOCK  ADVISORY  WRITE 0 08:01:104 0 EOF\n"
    "5: -> FLOCK  ADVISORY  WRITE 4126 08:01:104 0 EOF\n"
    "6: POSIX  ADVISORY  *NOINODE*\n"
    "7: FLOCK  ADVISORY  WRITE x 08:01:105 0 EOF\n"
    "\n8:\n9: ->\n";

TEST(LockTableTest, ARequestWaitsForTheLockAboveIt) {
  std::vector<LockRow> rows;
  LockTable table;
  for (const absl::string_view line : absl::StrSplit(kTable, '\n')) {
    if (const auto row = table.Read(line)) rows.push_back(*row);
  }
  ASSERT_EQ(rows.size(), 8u);
  EXPECT_EQ(rows[0].pid, 4121);
  EXPECT_FALSE(rows[0].waits);
  EXPECT_EQ(rows[0].inode, 100u);
  EXPECT_EQ(rows[0].device, DeviceNumber(8, 1));
  EXPECT_EQ(rows[5].device, DeviceNumber(0xfe, 0));
  for (const int waiter : {1, 2}) {
    EXPECT_TRUE(rows[waiter].waits);
    EXPECT_EQ(rows[waiter].holder, 4121);
  }
  EXPECT_EQ(rows[3].pid, 4124);
  EXPECT_EQ(rows[3].bytes.first, 128u);
  EXPECT_EQ(rows[3].bytes.last, 128u);
  EXPECT_EQ(rows[4].bytes.last, UINT64_MAX);
  EXPECT_TRUE(rows[4].is_of_descriptor);
  EXPECT_EQ(rows[4].pid, -1);
  EXPECT_EQ(rows[5].holder, -1);
  EXPECT_EQ(rows[7].pid, 4126);
  EXPECT_EQ(rows[7].holder, 0);  // in another pid namespace, or ended
}

TEST(LockTableTest, OfADescriptor) {
  const DescriptorLocks locks = ParseDescriptorLocks(
      "pos:\t0\nflags:\t02\nmnt_id:\t27\nino:\t103\n"
      "lock:\t1: OFDLCK ADVISORY  WRITE -1 fe:00:103 0 EOF\n");
  EXPECT_EQ(locks.inode, 103u);
  EXPECT_EQ(locks.mount, 27);
  ASSERT_EQ(locks.rows.size(), 1u);
  EXPECT_EQ(locks.rows[0].pid, -1);
  EXPECT_EQ(
      ParseDescriptorLocks("pos:\t0\nlock:\t1: FLOCK  ADVISORY  WRITE 7 fe:00:9 0 EOF\n").inode,
      9u);
  EXPECT_EQ(ParseDescriptorLocks("").inode, 0u);
}

// A child that does this, and then waits.
class Child {
 public:
  explicit Child(const std::function<void()>& run) : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run();
    while (true) pause();
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

  // Its locks once it has so many.
  std::vector<FileLock> Find(size_t count) const {
    std::vector<FileLock> locks;
    Eventually([&] {
      locks = FindFileLocks("/proc", pid_, {pid_}, INT64_MAX).locks;
      return locks.size() == count;
    });
    return locks;
  }
  // Before that a request may be in no table yet.
  void AwaitSleep() const {
    EXPECT_TRUE(Eventually([this] { return ReadProcStat("/proc", pid_)->state == 'S'; }));
  }

 private:
  const pid_t pid_;
};

// The kinds of locks.
struct Kind {
  const char* name;
  bool (*lock)(int fd);
  bool tells_holder;
};

bool LockWith(int command, int fd) {
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  return fcntl(fd, command, &whole) == 0;
}

const Kind kKinds[] = {
    {"flock", [](int fd) { return flock(fd, LOCK_EX) == 0; }, true},
    {"posix", [](int fd) { return LockWith(F_SETLKW, fd); }, true},
    {"of_a_descriptor", [](int fd) { return LockWith(F_OFD_SETLKW, fd); }, false},
};

class FileLocksTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    char path[] = "/tmp/rollcall-locks-XXXXXX";
    close(mkstemp(path));
    path_ = path;
    struct stat about;
    ASSERT_EQ(stat(path, &about), 0);
    inode_ = about.st_ino;
    if (access("/proc/locks", R_OK) != 0) GTEST_SKIP() << "this kernel lists no locks";
  }
  void TearDown() override { unlink(path_.c_str()); }

  std::function<void()> Locks() const {
    return [path = path_] {
      if (!GetParam().lock(open(path.c_str(), O_RDWR))) _exit(1);
    };
  }

  std::string path_;
  uint64_t inode_ = 0;
};

TEST_P(FileLocksTest, ListsHoldersAndWaiters) {
  const Child holder(Locks());
  const std::vector<FileLock> held = holder.Find(1);
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0].inode, inode_);
  EXPECT_EQ(held[0].path, path_);
  EXPECT_EQ(held[0].holder, holder.pid());
  EXPECT_FALSE(held[0].waits);
  const Child waiter(Locks());
  ASSERT_EQ(waiter.Find(1).size(), 1u);
  waiter.AwaitSleep();
  const std::vector<FileLock> awaited = waiter.Find(1);
  ASSERT_EQ(awaited.size(), 1u);
  EXPECT_EQ(awaited[0].inode, inode_);
  EXPECT_EQ(awaited[0].path, path_);
  EXPECT_EQ(awaited[0].holder, GetParam().tells_holder ? holder.pid() : 0);
  EXPECT_TRUE(awaited[0].waits);
  EXPECT_EQ(holder.Find(1).size(), 1u) << "a look ends no lock";
}

INSTANTIATE_TEST_SUITE_P(All, FileLocksTest, testing::ValuesIn(kKinds),
                         [](const auto& info) { return std::string(info.param.name); });

struct flock Bytes(off_t first, off_t size) {
  struct flock bytes = {};
  bytes.l_type = F_WRLCK;
  bytes.l_start = first;
  bytes.l_len = size;
  return bytes;
}

TEST(LockOfBytesTest, HasItsBytesWhereItIsHeldAndWhereItIsAwaited) {
  if (access("/proc/locks", R_OK) != 0) GTEST_SKIP() << "this kernel lists no locks";
  char path[] = "/tmp/rollcall-locks-XXXXXX";
  close(mkstemp(path));
  const auto lock = [&path](off_t first, off_t size) {
    return [path, first, size] {
      struct flock bytes = Bytes(first, size);
      if (fcntl(open(path, O_RDWR), F_OFD_SETLKW, &bytes) != 0) _exit(1);
    };
  };
  const Child holder(lock(64, 128));
  ASSERT_EQ(holder.Find(1).size(), 1u);
  EXPECT_EQ(holder.Find(1)[0].bytes.first, 64u);
  EXPECT_EQ(holder.Find(1)[0].bytes.last, 191u);
  const Child waiter(lock(100, 0));
  ASSERT_EQ(waiter.Find(1).size(), 1u);
  waiter.AwaitSleep();
  const FileLock awaited = waiter.Find(1).front();
  EXPECT_TRUE(awaited.waits);
  EXPECT_EQ(awaited.bytes.first, 100u);
  EXPECT_EQ(awaited.bytes.last, UINT64_MAX);
  unlink(path);
}

// As when a launcher has locked a file, and a rank has its descriptor.
TEST(InheritedLockTest, IsOfWhoHasTheDescriptorOnceItsMakerHasEnded) {
  if (access("/proc/locks", R_OK) != 0) GTEST_SKIP() << "this kernel lists no locks";
  char path[] = "/tmp/rollcall-locks-XXXXXX";
  const int fd = mkstemp(path);
  const pid_t maker = fork();
  if (maker == 0) _exit(flock(fd, LOCK_EX) == 0 ? 0 : 1);
  waitpid(maker, nullptr, 0);
  const Child heir([] {});
  close(fd);
  const std::vector<FileLock> locks = heir.Find(1);
  ASSERT_EQ(locks.size(), 1u);
  EXPECT_EQ(locks[0].path, path);
  EXPECT_EQ(locks[0].holder, heir.pid());
  EXPECT_FALSE(locks[0].waits);
  unlink(path);
}

TEST(ManyLocksTest, AreEightAndFirstThoseThatItWaitsFor) {
  if (access("/proc/locks", R_OK) != 0) GTEST_SKIP() << "this kernel lists no locks";
  char folder[] = "/tmp/rollcall-locks-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const auto lock = [&folder](int number) {
    const std::string path = absl::StrCat(folder, "/", number);
    if (flock(open(path.c_str(), O_RDWR | O_CREAT, 0600), LOCK_EX) != 0) _exit(1);
  };
  const Child holder([&] { lock(100); });
  ASSERT_EQ(holder.Find(1).size(), 1u);
  const Child many([&] {
    for (int i = 0; i < 12; ++i) lock(i);
    lock(100);
  });
  std::vector<FileLock> locks;
  EXPECT_TRUE(Eventually([&] {
    locks = many.Find(kMostFileLocks);
    return !locks.empty() && locks[0].waits;
  }));
  ASSERT_EQ(locks.size(), kMostFileLocks);
  EXPECT_TRUE(locks[0].waits);
  EXPECT_EQ(locks[0].holder, holder.pid());
  for (size_t i = 1; i < locks.size(); ++i) EXPECT_FALSE(locks[i].waits);
  for (int i = 0; i < 12; ++i) unlink(absl::StrCat(folder, "/", i).c_str());
  unlink(absl::StrCat(folder, "/100").c_str());
  rmdir(folder);
}

// A made-up /proc: process 20 has the file /a/x, inode 103 of device 08:01, open.
class LocksOfTheHostTest : public testing::Test {
 protected:
  LocksOfTheHostTest() {
    proc_.Write("20/fdinfo/3", "pos:\t0\nflags:\t02\nmnt_id:\t27\nino:\t103\n");
    proc_.Write("20/mountinfo", "27 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
    proc_.Write("20/fd/none", "");
    EXPECT_EQ(symlink("/a/x", (proc_.root() + "/20/fd/3").c_str()), 0);
    proc_.Write("1/stat", "");
  }
  FileLocks Find(const std::string& table, int64_t deadline_ns = INT64_MAX) {
    proc_.Write("locks", table);
    return FindFileLocks(proc_.root(), 20, {}, deadline_ns);
  }

  TemporaryTree proc_;
};

TEST_F(LocksOfTheHostTest, AreOfTheFileOnTheSameDevice) {
  const FileLocks same = Find("1: FLOCK  ADVISORY  WRITE 20 08:01:103 0 EOF\n");
  ASSERT_EQ(same.locks.size(), 1u);
  EXPECT_EQ(same.locks[0].path, "/a/x");
  const FileLocks other = Find("1: FLOCK  ADVISORY  WRITE 20 fe:00:103 0 EOF\n");
  ASSERT_EQ(other.locks.size(), 1u);
  EXPECT_EQ(other.locks[0].path, "") << "that is another file with this inode";
  EXPECT_NE(other.locks[0].device, same.locks[0].device);
}

TEST_F(LocksOfTheHostTest, AreReadBehindTensOfThousandsOfOthers) {
  std::string table;
  for (int i = 0; i < 40'000; ++i) {
    absl::StrAppend(&table, i, ": FLOCK  ADVISORY  WRITE 1 08:01:", 1000 + i, " 0 EOF\n");
  }
  absl::StrAppend(&table, "40000: FLOCK  ADVISORY  WRITE 20 08:01:103 0 EOF\n");
  const FileLocks found = Find(table);
  EXPECT_EQ(found.locks.size(), 1u);
  EXPECT_FALSE(found.cut);
  EXPECT_FALSE(Find(table, /*deadline_ns=*/0).cut) << "a busy host: not one was read";
  // Some deadline passes in the middle of so many, however fast the machine is.
  bool is_cut = false;
  for (int64_t patience_ns = 100'000; !is_cut && patience_ns < 60 * kSecond; patience_ns *= 2) {
    is_cut = FindFileLocks(proc_.root(), 20, {}, MonotonicNs() + patience_ns).cut;
  }
  EXPECT_TRUE(is_cut);
}

TEST(NoLocksTest, OfAProcessWithoutAnyOrThatIsGone) {
  const Child idle([] {});
  EXPECT_TRUE(FindFileLocks("/proc", idle.pid(), {idle.pid()}, INT64_MAX).locks.empty());
  EXPECT_TRUE(FindFileLocks("/proc", INT32_MAX, {INT32_MAX}, INT64_MAX).locks.empty());
}

}  // namespace
}  // namespace rollcall

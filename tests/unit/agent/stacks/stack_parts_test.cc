// SPDX-License-Identifier: Apache-2.0
// Small parts of taking stacks: names of JIT code, wait channels, sockets that pass descriptors,
// ELF symbols of damaged files.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <random>

#include "agent/processes/descriptor_socket.h"
#include "agent/stacks/wait_channels.h"
#include "agent/symbols/elf_symbols.h"
#include "agent/symbols/jit_names.h"
#include "temporary_tree.h"
#include "victim_process.h"

namespace rollcall {
namespace {

TEST(JitNamesTest, FindsTheCodeAtAnAddress) {
  const JitNames names = JitNames::Parse(
      "1000 20 py::train:/x/train.py\n"
      "not a line\n"
      "2000 0 empty\n"
      "ffffffffffffffff 10 wraps\n"
      "1010 8 replaced it\n");
  EXPECT_EQ(names.Find(0x1000), "py::train:/x/train.py");
  EXPECT_EQ(names.Find(0x1012), "replaced it");
  EXPECT_EQ(names.Find(0x1018), "");
  EXPECT_EQ(names.Find(0xfff), "");
  EXPECT_EQ(names.Find(0x2000), "");
}

TEST(JitNamesTest, ReadsTheMapThatTheProcessHasWritten) {
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  std::ofstream(path) << "7f0000001000 100 compiled\n";
  EXPECT_EQ(JitNames::ReadForProcess("/proc", getpid()).Find(0x7f0000001080), "compiled");
  unlink(path.c_str());
  EXPECT_EQ(JitNames::ReadForProcess("/proc", getpid()).Find(0x7f0000001080), "");
}

TEST(WaitChannelTest, ClassifiesCallsThatTakingAStackWouldEnd) {
  EXPECT_TRUE(EndsWhenStopped("ep_poll"));
  EXPECT_TRUE(EndsWhenSignalled("ep_poll"));
  EXPECT_TRUE(EndsWhenSignalled("poll_schedule_timeout.constprop.0"));
  EXPECT_FALSE(EndsWhenStopped("poll_schedule_timeout.constprop.0"));
  EXPECT_TRUE(EndsWhenStopped("unix_stream_data_wait"));
  for (const char* harmless : {"futex_wait_queue", "pipe_read", "do_wait", "", "0"}) {
    EXPECT_FALSE(EndsWhenStopped(harmless)) << harmless;
    EXPECT_FALSE(EndsWhenSignalled(harmless)) << harmless;
  }
  EXPECT_TRUE(IsUnknownWait("do_syscall_64"));
  EXPECT_TRUE(IsUnknownWait("0"));
  EXPECT_FALSE(IsUnknownWait("futex_wait_queue"));
}

class DescriptorSocketTest : public testing::Test {
 protected:
  // Sends a descriptor in the same way as the library.
  bool Send(int fd, const std::string& path) {
    const UniqueFd link(socket(AF_UNIX, SOCK_DGRAM, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    char what = 'q';
    iovec text = {&what, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = {};
    message.msg_name = &address;
    message.msg_namelen = sizeof(address);
    message.msg_iov = &text;
    message.msg_iovlen = 1;
    if (fd >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof(control);
      cmsghdr* part = CMSG_FIRSTHDR(&message);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(part), &fd, sizeof(fd));
    }
    return sendmsg(link.get(), &message, 0) == 1;
  }

  absl::StatusOr<std::unique_ptr<DescriptorSocket>> Listen(const std::string& name = "agent.sock") {
    return DescriptorSocket::Listen(
        UniqueFd(open(tree_.root().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), name);
  }

  TemporaryTree tree_;
  const std::string path_ = tree_.root() + "/agent.sock";
};

TEST_F(DescriptorSocketTest, ReceivesADescriptorAndItsSender) {
  auto socket = Listen();
  ASSERT_TRUE(socket.ok()) << socket.status();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_TRUE(Send(ends[1], path_));
  const auto passed = (*socket)->Receive(5'000'000'000);
  ASSERT_TRUE(passed.has_value());
  EXPECT_EQ(passed->pid, getpid());
  EXPECT_EQ(passed->kind, 'q');
  ASSERT_EQ(write(passed->fd.get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  EXPECT_FALSE((*socket)->Receive(0).has_value());
}

TEST_F(DescriptorSocketTest, IgnoresAMessageWithoutOne) {
  auto socket = Listen();
  ASSERT_TRUE(Send(-1, path_));
  EXPECT_FALSE((*socket)->Receive(5'000'000'000).has_value());
}

TEST_F(DescriptorSocketTest, ReplacesTheSocketOfADeadAgentAndNoOther) {
  {
    const UniqueFd dead(socket(AF_UNIX, SOCK_DGRAM, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof(address.sun_path) - 1);
    ASSERT_EQ(bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  auto living = Listen();
  ASSERT_TRUE(living.ok()) << living.status();
  EXPECT_EQ(Listen().status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Listen(std::string(120, 'x')).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(DescriptorSocketTest, LeavesWhatIsNotASocketAlone) {
  tree_.Write("agent.sock", "text");
  EXPECT_EQ(Listen().status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(unlink(path_.c_str()), 0);
  tree_.Write("other", "text");
  ASSERT_EQ(symlink((tree_.root() + "/other").c_str(), path_.c_str()), 0);
  EXPECT_EQ(Listen().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(access((tree_.root() + "/other").c_str(), F_OK), 0);
}

TEST_F(DescriptorSocketTest, StaysInTheOpenFolderAfterItsReplacement) {
  tree_.Write("mine/file", "");
  tree_.Write("other/agent.sock", "");
  UniqueFd folder(open((tree_.root() + "/mine").c_str(), O_PATH | O_DIRECTORY));
  ASSERT_EQ(rename((tree_.root() + "/mine").c_str(), (tree_.root() + "/moved").c_str()), 0);
  ASSERT_EQ(symlink((tree_.root() + "/other").c_str(), (tree_.root() + "/mine").c_str()), 0);
  {
    const auto socket = DescriptorSocket::Listen(std::move(folder), "agent.sock");
    ASSERT_TRUE(socket.ok()) << socket.status();
    EXPECT_EQ(access((tree_.root() + "/moved/agent.sock").c_str(), F_OK), 0);
  }
  EXPECT_NE(access((tree_.root() + "/moved/agent.sock").c_str(), F_OK), 0);
  EXPECT_EQ(access((tree_.root() + "/other/agent.sock").c_str(), F_OK), 0);
}

TEST(ElfSymbolsTest, FindsThemInAProgramAndSurvivesADamagedOne) {
  const UniqueFd whole(open(VictimPath("stack_victim").c_str(), O_RDONLY));
  EXPECT_NE(FindElfSymbols(whole.get(), {"main"})[0], 0u);
  EXPECT_EQ(FindElfSymbols(whole.get(), {"no_such_symbol"})[0], 0u);
  std::string bytes(1 << 20, '\0');
  const ssize_t size = pread(whole.get(), bytes.data(), bytes.size(), 0);
  ASSERT_GT(size, 0);
  bytes.resize(static_cast<size_t>(size));
  TemporaryTree tree;
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::string damaged = bytes.substr(0, random() % bytes.size());
    for (int i = 0; i < 50 && !damaged.empty(); ++i) {
      damaged[random() % std::min<size_t>(damaged.size(), round % 2 == 0 ? 64 : damaged.size())] =
          static_cast<char>(random());
    }
    const std::string path = tree.root() + "/damaged";
    std::ofstream(path, std::ios::binary) << damaged;
    const UniqueFd fd(open(path.c_str(), O_RDONLY));
    FindElfSymbols(fd.get(), {"main", "_PyRuntime"});
  }
}

}  // namespace
}  // namespace rollcall

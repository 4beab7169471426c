// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/open_in_root.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "temporary_tree.h"

namespace rollcall {
namespace {

class OpenInRootTest : public testing::Test {
 protected:
  OpenInRootTest() {
    tree_.Write("outside/file", "the agent's");
    tree_.Write("root/folder/file", "the process's");
  }

  // What `open` reads there; "-": it opens nothing.
  std::string Read(const std::function<UniqueFd(const std::string&, const std::string&, int)>& open,
                   const std::string& path, int flags = 0) const {
    const UniqueFd fd = open(tree_.root() + "/root", path, O_RDONLY | flags);
    char content[32];
    const ssize_t length = fd.valid() ? read(fd.get(), content, sizeof(content)) : -1;
    return length < 0 ? "-" : std::string(content, static_cast<size_t>(length));
  }

  TemporaryTree tree_;
};

TEST_F(OpenInRootTest, OpensTheFileBelowTheRoot) {
  EXPECT_EQ(Read(OpenInRoot, "/folder/file"), "the process's");
  EXPECT_EQ(Read(OpenWithoutLinks, "/folder/file"), "the process's");
  EXPECT_EQ(Read(OpenInRoot, "/folder/none"), "-");
  EXPECT_EQ(Read(OpenWithoutLinks, "/none/file"), "-");
}

TEST_F(OpenInRootTest, AnAbsoluteLinkMeansTheProcessesOwnRoot) {
  tree_.Link("root/out", tree_.root() + "/outside");
  tree_.Link("root/in", "/folder");
  EXPECT_EQ(Read(OpenInRoot, "/out/file"), "-");
  EXPECT_EQ(Read(OpenInRoot, "/in/file"), "the process's");
  EXPECT_EQ(Read(OpenWithoutLinks, "/out/file"), "-");
  EXPECT_EQ(Read(OpenWithoutLinks, "/in/file"), "-");
}

TEST_F(OpenInRootTest, NothingAboveTheRootIsReached) {
  tree_.Link("root/up", "../outside");
  EXPECT_EQ(Read(OpenInRoot, "/up/file"), "-");
  EXPECT_EQ(Read(OpenInRoot, "/../outside/file"), "-");
  EXPECT_EQ(Read(OpenWithoutLinks, "/up/file"), "-");
  EXPECT_EQ(Read(OpenWithoutLinks, "/../outside/file"), "-");
}

TEST_F(OpenInRootTest, ALinkInTheLastPlaceIsFollowedOnlyIfTheCallerWants) {
  tree_.Link("root/link", "/folder/file");
  EXPECT_EQ(Read(OpenInRoot, "/link"), "the process's");
  EXPECT_EQ(Read(OpenInRoot, "/link", O_NOFOLLOW), "-");
  EXPECT_EQ(Read(OpenWithoutLinks, "/link"), "-");
}

}  // namespace
}  // namespace rollcall

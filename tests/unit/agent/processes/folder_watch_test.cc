// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/folder_watch.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "temporary_tree.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;
using News = FolderWatch::News;

TEST(FolderWatchTest, ReportsEachNewFileOnce) {
  const TemporaryTree tree;
  tree.Write("watched/old", "");
  const auto watch = FolderWatch::Open(tree.root() + "/watched");
  ASSERT_NE(watch, nullptr);
  EXPECT_EQ(watch->Take(), News::kNone);
  tree.Write("watched/new", "text");
  EXPECT_EQ(watch->Take(), News::kNewFiles);
  EXPECT_EQ(watch->Take(), News::kNone);
  tree.Write("watched/new", "more text");
  tree.Remove("watched/old");
  EXPECT_EQ(watch->Take(), News::kNone);
  tree.Write("elsewhere", "");
  fs::rename(tree.root() + "/elsewhere", tree.root() + "/watched/moved");
  EXPECT_EQ(watch->Take(), News::kNewFiles);
}

TEST(FolderWatchTest, ReportsThatTheFolderHasAnotherName) {
  const TemporaryTree tree;
  tree.Write("watched/file", "");
  const auto watch = FolderWatch::Open(tree.root() + "/watched");
  fs::rename(tree.root() + "/watched", tree.root() + "/renamed");
  EXPECT_EQ(watch->Take(), News::kGone);
}

TEST(FolderWatchTest, ReportsThatTheFolderWasRemoved) {
  const TemporaryTree tree;
  tree.Write("watched/file", "");
  const auto watch = FolderWatch::Open(tree.root() + "/watched");
  tree.Remove("watched");
  EXPECT_EQ(watch->Take(), News::kGone);
}

TEST(FolderWatchTest, WatchesFoldersOnly) {
  const TemporaryTree tree;
  tree.Write("file", "");
  EXPECT_EQ(FolderWatch::Open(tree.root() + "/file"), nullptr);
  EXPECT_EQ(FolderWatch::Open(tree.root() + "/missing"), nullptr);
}

}  // namespace
}  // namespace rollcall

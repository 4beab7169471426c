// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/stacks/stack_tree.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace rollcall {
namespace {

TEST(RankRangesTest, RangesAreJoinedInWhateverOrderRanksCome) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    RankRanges ranks;
    std::set<int32_t> expected;
    for (int i = 0; i < 60; ++i) {
      const auto rank = static_cast<int32_t>(random() % 40);
      ranks.Add(rank);
      expected.insert(rank);
    }
    EXPECT_EQ(ranks.size(), expected.size());
    std::set<int32_t> listed;
    int32_t before = -2;
    for (const auto& [first, last] : ranks.ranges()) {
      EXPECT_GT(first, before + 1) << "ranges that touch are one";
      for (int32_t rank = first; rank <= last; ++rank) listed.insert(rank);
      before = last;
    }
    EXPECT_EQ(listed, expected);
  }
}

TEST(RankRangesTest, ListsRanges) {
  RankRanges ranks;
  EXPECT_EQ(ranks.List(), "");
  for (const int32_t rank : {0, 1, 2, 4, 63}) ranks.Add(rank);
  EXPECT_EQ(ranks.List(), "0-2,4,63");
}

class StackTreeTest : public testing::Test {
 protected:
  void Add(int32_t rank, const std::vector<std::string>& frames) {
    std::vector<uint32_t> labels;
    for (const std::string& frame : frames) labels.push_back(tree_.Intern(frame));
    tree_.Add(rank, labels);
  }

  StackTree tree_;
};

TEST_F(StackTreeTest, TheRankThatDiffersIsAtTheTop) {
  for (int rank = 0; rank < 64; ++rank) {
    if (rank == 3) {
      Add(rank, {"main", "validate", "read"});
    } else {
      Add(rank, {"main", "train", "ncclAllReduce"});
    }
  }
  EXPECT_EQ(ToText(tree_),
            "[0-63] 64 ranks, 64 threads\n"
            "  main\n"
            "  [3] 1 rank, 1 thread\n"
            "    validate\n"
            "    read\n"
            "  [0-2,4-63] 63 ranks, 63 threads\n"
            "    train\n"
            "    ncclAllReduce\n");
  EXPECT_EQ(ToFolded(tree_), "main;validate;read 1\nmain;train;ncclAllReduce 63\n");
}

TEST_F(StackTreeTest, ShowsThreadsThatEndOnTheWay) {
  Add(0, {"main"});
  Add(1, {"main", "work"});
  EXPECT_EQ(ToText(tree_),
            "[0-1] 2 ranks, 2 threads\n"
            "  main\n"
            "    (innermost of 1 thread)\n"
            "  [1] 1 rank, 1 thread\n"
            "    work\n");
}

TEST_F(StackTreeTest, ClassesHoldThreadsWithEqualStacks) {
  Add(0, {"main", "work"});
  Add(0, {"clone", "poll"});
  Add(1, {"clone", "poll"});
  Add(1, {"clone", "poll"});
  const std::vector<StackTree::Class> classes = tree_.Classes();
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_EQ(classes[0].ranks.List(), "0");
  EXPECT_EQ(classes[1].ranks.List(), "0-1");
  EXPECT_EQ(classes[1].threads, 3u);
  EXPECT_EQ(classes[1].frames, (std::vector<std::string>{"clone", "poll"}));
}

TEST_F(StackTreeTest, EveryFormKeepsNamesWithSignsApart) {
  Add(0, {"operator;\"quoted\\\"", "line\nbreak"});
  EXPECT_EQ(ToFolded(tree_), "operator:\"quoted\\\";line break 1\n");
  google::protobuf::Struct json;
  Add(1, {"not UTF-8: \xff"});
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(ToJson(tree_), &json).ok())
      << ToJson(tree_);
  EXPECT_NE(ToDot(tree_).find("operator;\\\"quoted\\\\\\\""), std::string::npos) << ToDot(tree_);
}

TEST_F(StackTreeTest, TheJsonHasTheWholeTree) {
  Add(0, {"main", "a"});
  Add(1, {"main", "b"});
  EXPECT_EQ(ToJson(tree_),
            "{\"frame\":\"\",\"ranks\":\"0-1\",\"threads\":2,\"children\":["
            "{\"frame\":\"main\",\"ranks\":\"0-1\",\"threads\":2,\"children\":["
            "{\"frame\":\"a\",\"ranks\":\"0\",\"threads\":1,\"children\":[]},"
            "{\"frame\":\"b\",\"ranks\":\"1\",\"threads\":1,\"children\":[]}]}]}\n");
}

TEST_F(StackTreeTest, DeepStacksNeedNoRecursion) {
  const std::vector<std::string> deep(200'000, "f");
  Add(0, deep);
  EXPECT_NE(ToText(tree_, 100).find("more lines"), std::string::npos);
  EXPECT_GT(ToJson(tree_).size(), deep.size());
  EXPECT_GT(ToDot(tree_).size(), deep.size());
  EXPECT_GT(ToFolded(tree_).size(), deep.size());
}

TEST_F(StackTreeTest, LongNamesAreShortenedForPeopleOnly) {
  const std::pair<const char*, const char*> names[] = {
      {"std::map<int, std::vector<long> >::find(int const&)", "std::map<>::find()"},
      {"sim::(anonymous namespace)::Run(sim::Comm&)", "sim::(anonymous namespace)::Run()"},
      {"Visitor::operator()(int) const", "Visitor::operator()() const"},
      {"std::operator<< <char>(std::ostream&)", "std::operator<< <>()"},
      {"wait<Stream::WaitUntil(uint64_t)::<lambda()> >", "wait<>"},
      {"PyEval_EvalCode", "PyEval_EvalCode"},
      {"odd<name", "odd<name"},
  };
  for (const auto& [name, shortened] : names) {
    StackTree tree;
    tree.Add(0, {tree.Intern(name)});
    EXPECT_EQ(ToText(tree), std::string("[0] 1 rank, 1 thread\n  ") + shortened + "\n");
    EXPECT_EQ(ToFolded(tree), std::string(name) + " 1\n");
  }
  StackTree tree;
  tree.Add(0, {tree.Intern(std::string(300, 'x'))});
  EXPECT_EQ(ToText(tree), "[0] 1 rank, 1 thread\n  " + std::string(95, 'x') + "...\n");
}

TEST_F(StackTreeTest, AnEmptyTreeHasNoFrames) {
  EXPECT_EQ(ToText(tree_), "[] 0 ranks, 0 threads\n");
  EXPECT_EQ(ToFolded(tree_), "");
}

TEST_F(StackTreeTest, TextKeepsPythonsNamesInBracketsAndLeavesOutTemplateArguments) {
  StackTree tree;
  tree.Add(0, {tree.Intern("<module> <string>:3"), tree.Intern("f.<locals>.<lambda> x.py:1"),
               tree.Intern("std::map<int, std::string>::find(int const&)"),
               tree.Intern("<12 frames left out>")});
  const std::string text = ToText(tree);
  for (const char* line : {"  <module> <string>:3\n", "  f.<locals>.<lambda> x.py:1\n",
                           "  std::map<>::find()\n", "  <12 frames left out>\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace rollcall

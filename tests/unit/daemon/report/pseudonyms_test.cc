// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/pseudonyms.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

TEST(PseudonymsTest, GivesEachNameOnePseudonym) {
  Pseudonyms names;
  EXPECT_EQ(names.Of("host", "node-17"), "host-1");
  EXPECT_EQ(names.Of("host", "node-18"), "host-2");
  EXPECT_EQ(names.Of("host", "node-17"), "host-1");
  EXPECT_EQ(names.Of("job", "node-17"), "job-1");
  EXPECT_EQ(names.Of("file", "/x/a.py", ".py"), "file-1.py");
  EXPECT_EQ(names.Of("host", ""), "");
}

TEST(PseudonymsTest, ReplacesWholeWordsAndLongNamesFirst) {
  Pseudonyms names;
  names.Of("host", "node-1");
  names.Of("host", "node-1.lab");
  EXPECT_EQ(names.ReplaceIn("node-1, node-17, xnode-1, node-1.lab: node-1"),
            "host-1, node-17, xnode-1, host-2: host-1");
}

TEST(PseudonymsTest, ANumberIsANameOnlyAfterTheWordJob) {
  Pseudonyms names;
  names.Of("job", "8812");
  EXPECT_EQ(names.ReplaceIn("job 8812 waits in call #8812"), "job job-1 waits in call #8812");
}

TEST(PseudonymsTest, NumbersAreStable) {
  Pseudonyms names;
  EXPECT_EQ(names.NumberOf(4121), 1);
  EXPECT_EQ(names.NumberOf(4122), 2);
  EXPECT_EQ(names.NumberOf(4121), 1);
  EXPECT_EQ(names.NumberOf(0), 0);
}

TEST(PseudonymsTest, TheMapGivesTheNamesBack) {
  Pseudonyms names;
  names.Of("host", "node-17");
  names.AddAlias("node", "host-1");
  names.NumberOf(4121);
  const std::map<std::string, std::string> expected = {{"host-1", "node-17"},
                                                       {"process 1", "4121"}};
  EXPECT_EQ(names.Map(), expected);
}

}  // namespace
}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
#include "base/yaml/yaml.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

// The error, or the value.
std::string Read(const std::string& text) {
  const absl::StatusOr<std::string> result = ReadYaml(
      [&text] {
        const YAML::Node root = YAML::Load(text);
        if (!root["a"]) FailAt(YAML::Mark::null_mark(), "there is no a");
        if (!root["a"].IsScalar()) FailAt(root["a"].Mark(), "a has no value");
        return root["a"].Scalar();
      },
      "not YAML: $0");
  return result.ok() ? *result : std::string(result.status().message());
}

TEST(YamlTest, AReaderReturnsItsValue) { EXPECT_EQ(Read("# a\na: b\n"), "b"); }

TEST(YamlTest, AnErrorNamesItsLine) {
  EXPECT_EQ(Read("b: c\na:\n  [b]\n"), "line 3: a has no value");
}

TEST(YamlTest, AnErrorOfTheWholeTextNamesNoLine) { EXPECT_EQ(Read("b: c\n"), "there is no a"); }

TEST(YamlTest, ReportsTheLineOfInvalidYaml) {
  EXPECT_EQ(Read("a: b\nb: [\n"), "line 3: not YAML: end of sequence flow not found");
}

}  // namespace
}  // namespace rollcall

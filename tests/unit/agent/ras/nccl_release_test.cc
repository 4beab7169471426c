// SPDX-License-Identifier: Apache-2.0
#include "agent/ras/nccl_release.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(NcclReleaseTest, VersionsInNames) {
  EXPECT_EQ(NcclVersionInName("libnccl.so.2.28.9"), 22809);
  EXPECT_EQ(NcclVersionInName("nvidia_nccl_cu12-2.27.3.dist-info"), 22703);
  EXPECT_EQ(NcclVersionInName("libnccl.so.2"), 0);
  EXPECT_EQ(NcclVersionInName("libnccl.so.2.28.x"), 0);
  EXPECT_EQ(NcclVersionInName("libnccl.so.2.999.1"), 0);
  EXPECT_EQ(NcclVersionInName("nvidia_nccl"), 0);
}

std::string MapOf(const std::string& path, const char* address = "7f000000") {
  return absl::StrCat(address, "0000-", address, "1000 r-xp 00000000 08:01 42                 ",
                      path, "\n");
}

TEST(NcclReleaseTest, TheMappedFileNamesIt) {
  const TemporaryTree tree;
  tree.Write("7/maps", MapOf("/usr/bin/python3", "55550000") + MapOf("/usr/lib/libnccl.so.2.26.5"));
  EXPECT_EQ(ReadNcclVersion(tree.root(), 7), 22605);
}

TEST(NcclReleaseTest, ThePackageOfTheMappedFileNamesIt) {
  const TemporaryTree tree;
  tree.Write("7/maps", MapOf("/venv/site-packages/nvidia/nccl/lib/libnccl.so.2"));
  tree.Write("7/root/venv/site-packages/nvidia_nccl_cu12-2.29.7.dist-info/METADATA", "");
  EXPECT_EQ(ReadNcclVersion(tree.root(), 7), 22907);
  EXPECT_EQ(ReadNcclVersion(tree.root(), 8), 0);
}

TEST(NcclReleaseTest, ReleasesWithADefectAreARisk) {
  EXPECT_THAT(RiskOfAskingRas(22902), IsEmpty());
  EXPECT_THAT(RiskOfAskingRas(23007), IsEmpty());
  EXPECT_THAT(RiskOfAskingRas(22809), HasSubstr("NCCL 2.28.9 could end the job"));
  EXPECT_THAT(RiskOfAskingRas(22304), HasSubstr("2.23.4 has no RAS"));
  EXPECT_THAT(RiskOfAskingRas(0), HasSubstr("unknown"));
}

}  // namespace
}  // namespace rollcall

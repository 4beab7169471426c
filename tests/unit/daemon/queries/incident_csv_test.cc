// SPDX-License-Identifier: Apache-2.0
#include "daemon/queries/incident_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "histories.h"

namespace rollcall {
namespace {

using testing::HasSubstr;

TEST(IncidentCsvTest, ALineHasAsManyFieldsAsTheHeader) {
  v1::Incident incident = Confirmed(1, 1000, "node-17", "a1");
  const std::string header = IncidentCsvHeader(), line = IncidentCsvLine(incident);
  EXPECT_EQ(std::count(header.begin(), header.end(), ','),
            std::count(line.begin(), line.end(), ','));
  EXPECT_THAT(line, testing::StartsWith("train-1,default,train,0,resolved,missing_rank,,"
                                        "1970-01-01T00:16:40.000Z,"));
}

TEST(IncidentCsvTest, QuotesWhatWouldBreakALine) {
  v1::Incident incident = Confirmed(1, 1000, "node-17", "a1");
  incident.mutable_verdicts(0)->set_summary("rank 3, in \"validate\"\nwaits");
  EXPECT_THAT(IncidentCsvLine(incident), HasSubstr(",\"rank 3, in \"\"validate\"\"\nwaits\"\r\n"));
}

TEST(IncidentCsvTest, ATextThatASpreadsheetWouldRunStaysAText) {
  v1::Incident incident = Confirmed(1, 1000, "node-17", "a1");
  for (const char* text : {"=1+1", "+1", "-1", "@x", "\tx"}) {
    incident.mutable_verdicts(0)->set_summary(text);
    EXPECT_THAT(IncidentCsvLine(incident), testing::EndsWith(absl::StrCat(",'", text, "\r\n")));
  }
}

}  // namespace
}  // namespace rollcall

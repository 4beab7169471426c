// SPDX-License-Identifier: Apache-2.0
// What the lists and the status of a job say of its incidents.
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

#include "daemon/incidents/incident_book.h"
#include "incident_book_fixture.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {
namespace {

// The most memory that this process has had at a time since the last call, in MiB; 0 if the kernel
// does not say.
int PeakMemory() {
  int kib = 0;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) kib = std::stoi(line.substr(6));
  }
  std::ofstream forget("/proc/self/clear_refs");
  return (forget << 5 << std::flush) ? kib / 1024 : 0;
}

// The stacks of thousands of ranks take megabytes, and diagnoses need the book meanwhile.
TEST_F(IncidentBookTest, AListWithoutStacksNeverCopiesThem) {
  IncidentBookOptions options;  // no thread saves the incident meanwhile
  options.log_incidents = false;
  IncidentBook book(options, &timeline_);
  ASSERT_TRUE(book.Start().ok());
  Apply(Hang(), &book);
  constexpr int kMiB = 64;
  StackResult result;
  result.job = JobKey("train");
  result.incident = "train-1";
  result.stack.set_error(std::string(size_t{kMiB} << 20, 'x'));
  book.AddStack(result);
  v1::ListIncidentsRequest request;
  request.set_live_only(true);
  PeakMemory();
  const int before = PeakMemory();
  const auto listed = book.reader().List(request);
  const int after = PeakMemory();
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->incidents_size(), 1);
  EXPECT_EQ(listed->incidents(0).id(), "train-1");
  EXPECT_EQ(listed->incidents(0).verdicts(0).cause(), "missing_rank");
  EXPECT_TRUE(listed->incidents(0).has_confirmed_at());
  EXPECT_TRUE(listed->incidents(0).stacks().empty());
  if (before == 0) GTEST_SKIP() << "the kernel does not say how much memory a process has had";
  EXPECT_LT(after - before, kMiB / 2);
  request.set_with_stacks(true);
  EXPECT_EQ(book.reader().List(request)->incidents(0).stacks_size(), 1);
}

// The lines come from the stacks that the list leaves out.
TEST_F(IncidentBookTest, AListWithoutStacksNamesTheLineOfACulprit) {
  const auto book = Begin();
  std::vector<Verdict> verdicts = Hang();
  Culprit culprit;
  culprit.process = 0;
  culprit.rank = 3;
  culprit.host = "node-1";
  culprit.pid = 7;
  verdicts[0].culprits = {culprit};
  Apply(verdicts, book.get());
  StackResult result;
  result.job = JobKey("train");
  result.incident = "train-1";
  result.stack.set_host("node-1");
  result.stack.set_pid(7);
  v1::Frame* frame = result.stack.add_threads()->add_frames();
  frame->set_function("validate");
  frame->set_file("/x/train.py");
  frame->set_line(212);
  frame->set_python(true);
  book->AddStack(result);
  v1::ListIncidentsRequest request;
  request.set_live_only(true);
  const auto listed = book->reader().List(request);
  ASSERT_TRUE(listed.ok() && listed->incidents_size() == 1) << listed.status();
  EXPECT_EQ(listed->incidents(0).verdicts(0).culprits(0).at(),
            book->reader().All("train")[0].verdicts(0).culprits(0).at());
  EXPECT_NE(listed->incidents(0).verdicts(0).culprits(0).at(), "");
}

TEST_F(IncidentBookTest, StatusAndListTellOfTheSameWait) {
  const auto book = Begin();
  Apply(Hang(), book.get());
  std::vector<Verdict> later = Hang();
  later[0].summary = "rank 3 has not called AllReduce; 3 ranks have waited 48 s";
  Apply(later, book.get());
  const JobBrief brief = book->reader().Brief(JobKey("train"));
  ASSERT_TRUE(brief.live.has_value() && brief.last.has_value());
  EXPECT_EQ(brief.live->summary, later[0].summary);
  EXPECT_EQ(brief.last->summary(), later[0].summary);
  const auto listed = book->reader().List(v1::ListIncidentsRequest());
  ASSERT_TRUE(listed.ok());
  EXPECT_EQ(listed->incidents(0).verdicts(0).summary(), later[0].summary);
}

}  // namespace
}  // namespace rollcall

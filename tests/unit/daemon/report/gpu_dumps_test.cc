// SPDX-License-Identifier: Apache-2.0
// What GPUs did, in an incident and in its report.
#include "daemon/report/gpu/gpu_dumps.h"

#include <gtest/gtest.h>

#include "daemon/report/html.h"
#include "daemon/report/report_text.h"

namespace rollcall {
namespace {

v1::GpuDump SpinningGpu() {
  v1::GpuDump dump;
  dump.set_rank(3);
  dump.set_host("node-17");
  dump.set_pid(4121);
  dump.set_device(3);
  dump.set_is_culprit(true);
  v1::GpuKernel* kernel = dump.add_kernels();
  kernel->set_name("ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  kernel->set_grid("(24,1,1)");
  kernel->set_block("(640,1,1)");
  kernel->set_status("Active");
  kernel->set_threads(15360);
  for (int i = 0; i < 4; ++i) {
    v1::GpuPlace* place = kernel->add_places();
    place->set_at("prims_ll.h:" + std::to_string(100 + i));
    place->set_threads(3840);
  }
  return dump;
}

TEST(GpuDumpLinesTest, SayInWhichKernelAGpuIsAndWhereItsThreadsStand) {
  v1::Incident incident;
  AddToIncident(SpinningGpu(), &incident);
  const std::vector<std::string> lines = GpuDumpLines(incident);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(
      lines[0],
      "rank 3 (node-17, pid 4121), the culprit: GPU 3 is in kernel "
      "ncclDevKernel_AllReduce_Sum_f32_RING_LL, grid (24,1,1), block (640,1,1): 3840 of 15360 "
      "threads at prims_ll.h:100, 3840 at prims_ll.h:101, 3840 at prims_ll.h:102, and 1 more "
      "place");
}

TEST(GpuDumpLinesTest, SayWhyThereIsNone) {
  v1::GpuDump dump;
  dump.set_rank(0);
  dump.set_host("node-1");
  dump.set_pid(7);
  dump.set_device(-1);
  dump.set_note("no kernel is on its GPU");
  v1::Incident incident;
  AddToIncident(dump, &incident);
  EXPECT_EQ(GpuDumpLines(incident),
            std::vector<std::string>{"rank 0 (node-1, pid 7), waiting: no kernel is on its GPU"});
  EXPECT_TRUE(GpuDumpLines(v1::Incident()).empty());
}

TEST(GpuDumpLinesTest, ReportsThatNoKernelRuns) {
  v1::GpuDump dump = SpinningGpu();
  dump.mutable_kernels(0)->set_status("Pending");
  dump.mutable_kernels(0)->clear_places();
  dump.set_kernels_left_out(2);
  v1::Incident incident;
  AddToIncident(dump, &incident);
  const std::vector<std::string> lines = GpuDumpLines(incident);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find("RING_LL (Pending), grid"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find("2 more kernels are on GPU 3"), std::string::npos) << lines[1];
}

TEST(GpuDumpsTest, TheNewestOfAProcessReplacesTheOldOne) {
  v1::Incident incident;
  AddToIncident(SpinningGpu(), &incident);
  v1::GpuDump later = SpinningGpu();
  later.clear_kernels();
  AddToIncident(later, &incident);
  ASSERT_EQ(incident.gpu_dumps_size(), 1);
  EXPECT_TRUE(incident.gpu_dumps(0).kernels().empty());
  for (int pid = 0; pid < 100; ++pid) {
    later.set_pid(pid);
    AddToIncident(later, &incident);
  }
  EXPECT_EQ(incident.gpu_dumps_size(), kMostGpuDumps);
  EXPECT_EQ(incident.gpu_dumps(kMostGpuDumps - 1).pid(), 99);
}

TEST(GpuDumpsTest, AReportHasThem) {
  v1::Incident incident;
  incident.add_verdicts()->set_summary("rank 3 stalls");
  AddToIncident(SpinningGpu(), &incident);
  EXPECT_NE(ToText(incident).find("What the GPUs did"), std::string::npos);
  EXPECT_NE(ToHtml(incident, false).find("ncclDevKernel_AllReduce"), std::string::npos);
}

}  // namespace
}  // namespace rollcall

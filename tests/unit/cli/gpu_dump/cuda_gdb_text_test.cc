// SPDX-License-Identifier: Apache-2.0
// What cuda-gdb prints about a core dump. The tables have the form of NVIDIA's manual and of newer
// releases; their contents are made up.
#include "cli/gpu_dump/cuda_gdb_text.h"

#include <gtest/gtest.h>

#include <string>

#include "base/clean_text.h"
#include "daemon/report/gpu/gpu_dumps.h"

namespace rollcall {
namespace {

constexpr char kStuckInNccl[] =
    "Opening GPU coredump: /tmp/rollcall-gpu-1/core.4121\n"
    "[Current focus set to CUDA kernel 0, grid 53, block (0,0,0), thread (0,0,0), device 0, sm 124, "
    "warp 0, lane 0]\n"
    "#0  0x00007f2e6fbff300 in spin<<<(2,1,1),(96,1,1)>>> () at spin.cu:31\n"
    "  Kernel Parent Dev Grid Status       SMs Mask GridDim  BlockDim Invocation \n"
    "*      0      -   0   53 Active 0x000000000003 (2,1,1) (96,1,1) spin(flag=0x7f00, limit=3) \n"
    "       1      -   0   54 Active 0x000000000004 (1,1,1) (32,1,1) void fill<float, 4>(float*)() \n"
    "  BlockIdx ThreadIdx To BlockIdx To ThreadIdx Count                 PC   Filename  Line \n"
    "Kernel 0\n"
    "*  (0,0,0)   (0,0,0)     (0,0,0)     (63,0,0)    64 0x00007f2e6fbff300 /x/my dir/spin.cu    31 \n"
    "   (0,0,0)  (64,0,0)     (0,0,0)     (95,0,0)    32 0x00007f2e6fbff400 /x/my dir/spin.cu    40 \n"
    "   (1,0,0)   (0,0,0)     (1,0,0)     (95,0,0)    96 0x00007f2e6fbff310 /x/my dir/spin.cu    31 \n"
    "Kernel 1\n"
    "   (0,0,0)   (0,0,0)     (0,0,0)     (31,0,0)    32 0x00007f2e6fa00000              0 \n";

v1::GpuDump ReadGdb(const std::string& text, GdbRead expected = GdbRead::kKernels) {
  v1::GpuDump dump;
  EXPECT_EQ(ReadCudaGdb(text, *DefaultRedactor(), &dump), expected);
  return dump;
}

std::string KernelRowOf(int number, const std::string& invocation) {
  return std::to_string(number) + " - 0 7 Active 0xff (1,1,1) (32,1,1) " + invocation + "\n";
}

TEST(CudaGdbTextTest, KernelsAndWhereTheirThreadsStand) {
  const v1::GpuDump dump = ReadGdb(kStuckInNccl);
  ASSERT_EQ(dump.kernels_size(), 2);
  const v1::GpuKernel& spin = dump.kernels(0);
  EXPECT_EQ(spin.name(), "spin");
  EXPECT_EQ(spin.grid(), "(2,1,1)");
  EXPECT_EQ(spin.block(), "(96,1,1)");
  EXPECT_EQ(spin.status(), "Active");
  EXPECT_EQ(spin.threads(), 192);
  ASSERT_EQ(spin.places_size(), 2);
  EXPECT_EQ(spin.places(0).at(), "/x/my dir/spin.cu:31");
  EXPECT_EQ(spin.places(0).threads(), 160);
  EXPECT_EQ(spin.places(1).at(), "/x/my dir/spin.cu:40");
}

TEST(CudaGdbTextTest, CodeWithoutLinesHasAddresses) {
  const v1::GpuDump dump = ReadGdb(kStuckInNccl);
  ASSERT_EQ(dump.kernels_size(), 2);
  EXPECT_EQ(dump.kernels(1).name(), "void fill<float, 4>(float*)");
  ASSERT_EQ(dump.kernels(1).places_size(), 1);
  EXPECT_EQ(dump.kernels(1).places(0).at(), "0x00007f2e6fa00000");
}

TEST(CudaGdbTextTest, TheExampleOfTheManual) {
  const v1::GpuDump dump = ReadGdb(
      "  Kernel Parent Dev Grid Status   SMs Mask   GridDim  BlockDim      Name Args\n"
      "*      1      -   0    2 Active 0x00ffffff (240,1,1) (128,1,1) acos_main parms=...\n"
      "  BlockIdx ThreadIdx To BlockIdx ThreadIdx Count   Virtual PC    Filename   Line\n"
      "Device 0 SM 0\n"
      "* (0,0,0  (0,0,0)    (0,0,0)  (31,0,0)    32  0x000000000088f88c   acos.cu   376\n"
      "  (0,0,0)(32,0,0)  (191,0,0) (127,0,0) 24544  0x000000000088f800   acos.cu   374\n");
  ASSERT_EQ(dump.kernels_size(), 1);
  EXPECT_EQ(dump.kernels(0).name(), "acos_main");
  EXPECT_EQ(dump.kernels(0).threads(), 24576);
  ASSERT_EQ(dump.kernels(0).places_size(), 2);
  EXPECT_EQ(dump.kernels(0).places(0).at(), "acos.cu:374");
  EXPECT_EQ(dump.kernels(0).places(0).threads(), 24544);
}

TEST(CudaGdbTextTest, AKernelOfTheGpuAndAKernelInClusters) {
  const v1::GpuDump dump = ReadGdb(
      "* 3 1 0 -7 Active 0xf (32,1,1) (16,1,1) kernel3(c=5)\n"
      "  4 - 0 8 Active 0xf (32,8,1) (320,1,1) (2,1,1) gemm<128, 256>(int*)(a=1)\n");
  ASSERT_EQ(dump.kernels_size(), 2);
  EXPECT_EQ(dump.kernels(0).name(), "kernel3");
  EXPECT_EQ(dump.kernels(1).name(), "gemm<128, 256>(int*)");
  EXPECT_EQ(dump.kernels(1).block(), "(320,1,1)");
}

TEST(CudaGdbTextTest, DistinguishesAGpuWithoutAKernelFromAnUnreadableText) {
  EXPECT_TRUE(
      ReadGdb("No CUDA kernels.\nNo CUDA threads.\n", GdbRead::kNoKernel).kernels().empty());
  for (const char* text : {"", "\n\n", "Failed to read core file: not an ELF file\n",
                           "Undefined command: \"target cudacore\"", "Kernel 0\n"}) {
    EXPECT_TRUE(ReadGdb(text, GdbRead::kUnreadable).kernels().empty()) << text;
  }
}

TEST(CudaGdbTextTest, ValuesOfArgumentsAndSecretsAreLeftOut) {
  const std::string secret = "hf_" + std::string(34, 'q');
  const v1::GpuDump dump =
      ReadGdb(KernelRowOf(0, "step(key=\"hunter2\", n=3)") + KernelRowOf(1, "f<" + secret + ">()") +
              "Kernel 0\n(0,0,0) (0,0,0) (0,0,0) (31,0,0) 32 0x1 /x/" + secret + "/f.cu 3\n");
  ASSERT_EQ(dump.kernels_size(), 2);
  EXPECT_EQ(dump.kernels(0).name(), "step");
  EXPECT_NE(dump.kernels(1).name().find(kRedacted), std::string::npos);
  const std::string all = dump.SerializeAsString();
  EXPECT_EQ(all.find("hunter2"), std::string::npos) << dump.DebugString();
  EXPECT_EQ(all.find("qqqq"), std::string::npos) << dump.DebugString();
}

TEST(CudaGdbTextTest, ATruncatedTextGivesWhatItHas) {
  const std::string whole = kStuckInNccl;
  for (size_t size = 0; size < whole.size(); ++size) {
    v1::GpuDump dump;
    ReadCudaGdb(whole.substr(0, size), *DefaultRedactor(), &dump);
    EXPECT_LE(dump.kernels_size(), 2);
  }
}

TEST(CudaGdbTextTest, HugeTextsGiveABoundedResult) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += KernelRowOf(i, std::string(2000, 'k') + "()");
  const v1::GpuDump many = ReadGdb(text);
  EXPECT_EQ(many.kernels_size(), kMostGpuKernels);
  EXPECT_GT(many.kernels_left_out(), 0);
  EXPECT_LE(many.ByteSizeLong(), 16'384u);
  text = KernelRowOf(0, "k()") + "Kernel 0\n";
  for (int i = 0; i < 30'000; ++i) {
    text += "(0,0,0) (0,0,0) (0,0,0) (0,0,0) 1 0x1 f.cu " + std::to_string(i + 1) + "\n";
  }
  const v1::GpuDump wide = ReadGdb(text);
  ASSERT_EQ(wide.kernels_size(), 1);
  EXPECT_EQ(wide.kernels(0).threads(), 30'000);
  EXPECT_EQ(wide.kernels(0).places_size(), kMostGpuPlaces);
}

TEST(CudaGdbTextTest, HostileNumbersAndNamesDoNoHarm) {
  const std::string evil = "k\x1b[31m\xff\xe2\x80\xae";
  const v1::GpuDump dump = ReadGdb(
      KernelRowOf(0, evil) + "99999999999999999999999 - 0 7 Active 0xff (1,1,1) (1,1,1) k()\n" +
      "Kernel 99999999999999999999\nKernel 0\n" +
      "(0,0,0) (0,0,0) (0,0,0) (0,0,0) 9223372036854775807 0x1 f.cu 1\n"
      "(0,0,0) (0,0,0) (0,0,0) (0,0,0) 9223372036854775807 0x1 f.cu 1\n"
      "(0,0,0) (0,0,0) (0,0,0) (0,0,0) 5 0x2 f.cu 99999999999999999999\n" +
      std::string(300'000, '(') + "\n" + std::string("\0\0\n", 3));
  ASSERT_EQ(dump.kernels_size(), 1);
  EXPECT_TRUE(IsCleanText(dump.kernels(0).name()));
  EXPECT_EQ(dump.kernels(0).threads(), INT32_MAX);
}

}  // namespace
}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
// Tests the recorded shapes of PyTorch's tensors, in every interpreter of this machine. A stand-in
// for torch has a process group that calls the simulated NCCL.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "preloaded_process.h"
#include "python_interpreters.h"

namespace rollcall {
namespace {

constexpr const char* kTorch = R"(
import ctypes, sys, types

class Id(ctypes.Structure): _fields_ = [('b', ctypes.c_byte * 128)]
nccl = ctypes.CDLL('libnccl.so.2')
data = (ctypes.c_float * 64)()

def new_comm():
    i, comm = Id(), ctypes.c_void_p()
    assert nccl.ncclGetUniqueId(ctypes.byref(i)) == 0
    assert nccl.ncclCommInitRank(ctypes.byref(comm), 1, i, 0) == 0
    return comm

def call(comm, count):
    assert nccl.ncclAllReduce(data, data, ctypes.c_size_t(count), 7, 0, comm, None) == 0

class Tensor:
    def __init__(self, *shape): self.shape = shape

class ProcessGroup:
    def __init__(self, group_desc):
        self.group_desc, self.comm = group_desc, new_comm()
    def allreduce(self, tensors, opts=None):
        call(self.comm, 1)
        return "work"
    def _allgather_base(self, output, tensor, opts=None):
        call(self.comm, 2)
    def all_to_all_single(self, output, tensor, in_splits, out_splits):
        call(self.comm, 3)
        call(self.comm, 3)
    def barrier(self, opts=None):
        call(self.comm, 4)
    def broadcast(self, tensors, opts=None):
        raise ValueError("no such root")

module = types.ModuleType("torch._C._distributed_c10d")
module.ProcessGroup = ProcessGroup
)";

class TorchShapesTest : public PreloadedProcessTest, public testing::WithParamInterface<int> {
 protected:
  TorchShapesTest() : PreloadedProcessTest(ROLLCALL_SIM_DIR) {}

  void SetUp() override {
    PreloadedProcessTest::SetUp();
    interpreter_ = FindInterpreter(GetParam());
    if (interpreter_.empty()) GTEST_SKIP() << "this machine has no python3." << GetParam();
  }

  // The segment of a program that has imported torch, and then does this.
  SegmentSnapshot After(const std::string& program, const char* asked = "1",
                        const char* imports = "sys.modules[module.__name__] = module\n") {
    std::ofstream(scratch_ / "train.py") << kTorch << imports << program;
    EXPECT_EQ(Run({interpreter_, scratch_ / "train.py"}, {{"ROLLCALL_TENSOR_SHAPES", asked}}), 0)
        << Stderr();
    EXPECT_EQ(Stderr(), "");
    return Read();
  }

  std::string interpreter_;
};

std::vector<std::string> ListShapes(const CommSnapshot& comm) {
  std::vector<std::string> shapes;
  for (const RecordSnapshot& record : comm.records) shapes.push_back(record.shape);
  return shapes;
}

TEST_P(TorchShapesTest, AreThoseOfTheTensorsWithTheNameOfTheCall) {
  const SegmentSnapshot snapshot = After(R"(
group = ProcessGroup("dp")
assert group.allreduce([Tensor(1024, 4096)]) == "work"
group._allgather_base(Tensor(8), Tensor(2, 2))
group.all_to_all_single(Tensor(3), Tensor(3, 1), [], [])
group.barrier()
call(group.comm, 5)
group.allreduce([Tensor()])
)");
  ASSERT_EQ(snapshot.communicators.size(), 1u);
  EXPECT_EQ(ListShapes(snapshot.communicators[0]),
            (std::vector<std::string>{"[1024, 4096]", "[2, 2]", "all_to_all_single [3, 1]",
                                      "all_to_all_single [3, 1]", "barrier", "", "[]"}));
}

TEST_P(TorchShapesTest, GiveGroupsTheirNames) {
  const SegmentSnapshot snapshot = After(R"(
one, two, three = ProcessGroup("dp"), ProcessGroup("tp"), ProcessGroup("undefined")
one.barrier()
two.barrier()
three.barrier()
)");
  ASSERT_EQ(snapshot.communicators.size(), 3u);
  EXPECT_EQ(snapshot.communicators[0].name, "dp");
  EXPECT_EQ(snapshot.communicators[1].name, "tp");
  EXPECT_EQ(snapshot.communicators[2].name, "");
}

TEST_P(TorchShapesTest, LeaveErrorsAndOddArgumentsAlone) {
  const SegmentSnapshot snapshot = After(R"(
group = ProcessGroup(7)
try:
    group.broadcast([Tensor(1)])
    raise SystemExit(3)
except ValueError as error:
    assert str(error) == "no such root"
group.allreduce(None)
group.allreduce(tensors=[Tensor(5)])
group.allreduce([Tensor("a")])
group.allreduce([Tensor(*range(12))])
group.allreduce([])
group.barrier()
)");
  ASSERT_EQ(snapshot.communicators.size(), 1u);
  EXPECT_EQ(ListShapes(snapshot.communicators[0]),
            (std::vector<std::string>{"", "", "", "", "", "barrier"}));
  EXPECT_EQ(snapshot.communicators[0].entered, 6u);
}

// Reports leave lines of this file out: they do not belong to the program.
TEST_P(TorchShapesTest, ComeFromCodeWithAFileNameOfItsOwn) {
  After(
      "call(new_comm(), 1)\n"
      "assert ProcessGroup.allreduce.__code__.co_filename == '<rollcall>'\n");
}

TEST_P(TorchShapesTest, AreAbsentByDefault) {
  const SegmentSnapshot snapshot = After(
      "method = ProcessGroup.allreduce\ngroup = ProcessGroup('dp')\n"
      "group.allreduce([Tensor(1)])\nassert ProcessGroup.allreduce is method\n",
      "0");
  EXPECT_EQ(ListShapes(snapshot.communicators.at(0)), (std::vector<std::string>{""}));
}

TEST_P(TorchShapesTest, ImportNothing) {
  const SegmentSnapshot snapshot = After(
      "before = set(sys.modules)\ncomm = new_comm()\nfor _ in range(9): call(comm, 1)\n"
      "assert not any(m.startswith('torch') for m in set(sys.modules) - before)\n",
      "1", "");
  EXPECT_EQ(snapshot.communicators.at(0).entered, 9u);
}

INSTANTIATE_TEST_SUITE_P(Python3, TorchShapesTest, testing::Range(8, 15));

}  // namespace
}  // namespace rollcall

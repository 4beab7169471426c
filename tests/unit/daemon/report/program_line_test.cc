// SPDX-License-Identifier: Apache-2.0
// Where a process stands in its program, and the advice that follows: on stacks of real programs,
// recorded with `rollcall run`, and on frames that few programs have.
#include "daemon/report/program_line.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/read_file.h"
#include "daemon/diagnosis/advice.h"
#include "daemon/model/client_limits.h"
#include "daemon/words/places.h"
#include "daemon/words/process_roles.h"
#include "google/protobuf/util/json_util.h"
#include "job_builder.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

// The stack of a culprit, then that of a rank that waits for it.
v1::Incident ReadStacks(const std::string& name) {
  const std::string text =
      ReadFile(std::string(RECORDED_STACKS) + "/" + name + ".json").value_or("");
  v1::Incident incident;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(text, &incident).ok()) << name;
  EXPECT_EQ(incident.stacks_size(), 2) << name;
  return incident;
}

Verdict VerdictOn(const v1::Incident& incident, CallArgs culprits, CallArgs others) {
  Verdict v;
  v.cause = culprits.op == Op::kNone ? Cause::kMissingRank : Cause::kOperationMismatch;
  if (culprits.op == others.op) v.cause = Cause::kArgumentMismatch;
  if (v.cause == Cause::kArgumentMismatch) v.mismatched_fields = {"count"};
  v.position = 50;
  v.communicator_size = 4;
  v.call = others;
  Culprit culprit;
  culprit.process = 0;
  culprit.call = culprits;
  v.culprits = {culprit};
  v.waiting_ranks = {1, 2, 3};
  v.places = {FindPlace(incident.stacks(0))};
  v.waiting_place = FindPlace(incident.stacks(1));
  return v;
}

struct Recorded {
  const char* name;    // of the file
  const char* place;   // in words
  const char* advice;  // the first
  CallArgs culprits = {};
  CallArgs others = AllReduce();
};

const Recorded kRecorded[] = {
    {"upload_checkpoint", "`upload_checkpoint` (train.py:38), waiting in Queue.get",
     "waits-for-a-thread"},
    {"torch_queue", "`upload_checkpoint` (lock.py:5), waiting in Queue.get", "waits-for-a-thread"},
    {"wait_for_thread", "`wait_for_thread` (train.py:41), waiting in Thread.join",
     "waits-for-a-thread"},
    {"poll_flag", "`poll_flag` (train.py:45), waiting in time.sleep", "sleeps-alone"},
    {"take_file_lock", "`take_file_lock` (train.py:50), waiting in fcntl.flock", "file-lock"},
    {"take_filelock", "`take_filelock` (train.py:54), waiting in BaseFileLock.__enter__",
     "file-lock"},
    {"run_converter", "`run_converter` (train.py:57), waiting in subprocess.run",
     "waits-for-a-child"},
    {"free_cycles", "`Slow.__del__` (train.py:68), waiting in time.sleep", "garbage-collection"},
    {"load_plugin", "the top level (slowplugin.py:1), waiting in time.sleep", "imports-alone"},
    {"ask_person", "`ask_person` (train.py:81), waiting in Bdb.trace_dispatch", "debugger-prompt"},
    {"fetch_weights", "`fetch_weights` (train.py:84), waiting in request.urlopen",
     "downloads-alone"},
    {"save_checkpoint", "`save_checkpoint` (train.py:91), waiting in file.write", "saves-alone"},
    {"handle_signal", "`on_signal` (train.py:93), waiting in time.sleep", "signal-handler"},
    {"validate", "`validate` (train.py:100)", "validates-alone"},
    {"next_batch", "`next_batch` (train.py:64), waiting in _BaseDataLoaderIter.__next__",
     "data-loader"},
    {"cpp_pause", "`Validate` (one_rank_stops_calling.cc:6), waiting in pause", "validates-alone"},
    {"ddp_validate", "`validate` (train.py:55), waiting in DistributedDataParallel.forward",
     "buffer-broadcast", Broadcast()},
    {"fsdp_state", "`full_state` (train.py:41), waiting in state_dict.get_model_state_dict",
     "rank0-only-checkpoint", AllGather(), AllReduce(1)},
    {"ddp_left_loop", "`main` (dropped_batch.py:88), waiting in distributed_c10d.barrier",
     "uneven-inputs", AllReduce(1)},
};

TEST(RecordedStacksTest, ShowTheLineAndTheFirstAdvice) {
  for (const Recorded& recorded : kRecorded) {
    const Verdict v = VerdictOn(ReadStacks(recorded.name), recorded.culprits, recorded.others);
    EXPECT_EQ(PlaceInWords(v.places[0]), recorded.place) << recorded.name;
    EXPECT_EQ(AdviceFor(v).front().id, recorded.advice) << recorded.name << v.places[0].functions;
  }
}

// A stack fits its own advice and not that of the others. One program may stand in several places:
// what it waits for, and who called it.
TEST(RecordedStacksTest, GetNoAdviceOfOtherPrograms) {
  const std::vector<std::pair<std::string, std::string>> both = {
      {"ddp_validate", "validates-alone"}};
  for (const Recorded& recorded : kRecorded) {
    const Verdict v = VerdictOn(ReadStacks(recorded.name), recorded.culprits, recorded.others);
    for (const AdviceEntry& entry : StackAdvice()) {
      const std::pair<std::string, std::string> pair = {recorded.name, entry.id};
      const bool allowed = entry.id == std::string(recorded.advice) ||
                           std::find(both.begin(), both.end(), pair) != both.end();
      EXPECT_LE(entry.fits(v), allowed) << recorded.name << " " << entry.id;
    }
  }
}

v1::Frame Native(const std::string& function, const std::string& module,
                 const std::string& file = "", int line = 0) {
  v1::Frame frame;
  frame.set_function(function);
  frame.set_module(module);
  frame.set_file(file);
  frame.set_line(line);
  return frame;
}

v1::Frame Python(const std::string& function, const std::string& file, int line) {
  v1::Frame frame = Native(function, "", file, line);
  frame.set_python(true);
  return frame;
}

v1::ProcessStack Stack(const std::vector<v1::Frame>& frames, const char* state = "S") {
  v1::ProcessStack stack;
  stack.set_pid(7);
  v1::ThreadStack* thread = stack.add_threads();
  thread->set_tid(7);
  thread->set_state(state);
  for (const v1::Frame& frame : frames) *thread->add_frames() = frame;
  return stack;
}

constexpr char kLibc[] = "/usr/lib/x86_64-linux-gnu/libc.so.6";
constexpr char kApp[] = "/home/user/bin/train";

TEST(ProgramLineTest, SkipsTheLibrariesOfACppProgram) {
  const v1::ProcessStack stack =
      Stack({Native("__futex_abstimed_wait_common", kLibc), Native("pthread_cond_wait", kLibc),
             Native("std::condition_variable::wait(std::unique_lock<std::mutex>&)",
                    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"),
             Native("wait<Queue<int>::Pop()::<lambda()> >", kApp,
                    "/usr/include/c++/12/condition_variable", 102),
             Native("int (anonymous namespace)::Queue<int>::Pop(bool)", kApp, "../src/queue.h", 31),
             Native("main", kApp, "../src/train.cc", 12), Native("_start", kApp)});
  const StackPlace place = FindPlace(stack);
  EXPECT_EQ(place.at, "../src/queue.h:31 in Queue::Pop");
  EXPECT_EQ(PlaceInWords(place), "`Queue::Pop` (queue.h:31), waiting in wait");
}

TEST(ProgramLineTest, NamesTheCallAndNotTheWrapperOfThePreloadedLibrary) {
  const StackPlace place = FindPlace(
      Stack({Native("poll", kLibc), Native("cudaStreamSynchronize", "/usr/lib/libcudart.so.13"),
             Native("rollcall::ObserveWait(rollcall::Op, CUstream_st*)", "/opt/lib/librollcall.so"),
             Native("Step()", kApp), Native("main", kApp)}));
  EXPECT_EQ(PlaceInWords(place), "`Step` (train), waiting in cudaStreamSynchronize");
}

TEST(ProgramLineTest, NamesTheProgramWhereThereAreNoLines) {
  const StackPlace place =
      FindPlace(Stack({Native("pause", kLibc), Native("Validate()", kApp), Native("main", kApp)}));
  EXPECT_EQ(PlaceInWords(place), "`Validate` (train), waiting in pause");
}

// Libraries of other package managers lie in folders of their own.
TEST(ProgramLineTest, PrefersALineOfPythonToANativeFunctionWithoutASource) {
  for (const char* module :
       {"/home/x/miniconda3/envs/y/lib/libfancy.so.5", "/home/x/app/_reader.so",
        "/sw/spack/opt/spack/linux/gcc-12/hdf5/lib/libhdf5.so", "/opt/intel/oneapi/lib/libmkl.so",
        "/usr/local/Ascend/lib64/libascendcl.so", "/opt/cray/pe/lib64/libsci.so"}) {
    const StackPlace place = FindPlace(
        Stack({Native("read", kLibc), Native("slow_read", module),
               Python("load_shard", "/x/train.py", 7), Python("<module>", "/x/train.py", 9)}));
    EXPECT_EQ(place.at, "/x/train.py:7 in load_shard") << module;
  }
}

TEST(ProgramLineTest, NamesALineOfAnExtensionOfTheProgram) {
  v1::Frame interpreter = Native("_PyEval_Vector", "/home/x/conda/bin/python3.11");
  interpreter.set_interpreter(true);
  const auto line_in = [&](const char* module) {
    return FindPlace(Stack({Native("Reader::Next()", module, "reader.cc", 31), interpreter,
                            Python("load_shard", "/x/train.py", 7)}))
        .at;
  };
  EXPECT_EQ(line_in("/x/_reader.so"), "reader.cc:31 in Reader::Next");
  EXPECT_EQ(line_in("/home/x/conda/lib/libreader.so"), "/x/train.py:7 in load_shard")
      << "it belongs to the interpreter's environment";
}

TEST(ProgramLineTest, SkipsWrappersAndGeneratedCode) {
  const std::string site = "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py";
  const StackPlace place = FindPlace(Stack(
      {Python("forward", "<eval_with_key>.3", 4), Python("wrap.<locals>.call", "<rollcall>", 3),
       Python("FSDP.forward", "/opt/venv/lib/python3.11/site-packages/torch/fsdp.py", 9),
       Python("Module._call_impl", site, 1789), Python("Module._wrapped_call_impl", site, 1778),
       Python("train.<locals>.step", "/x/train.py", 5), Python("<module>", "/x/train.py", 9)},
      "R"));
  EXPECT_EQ(PlaceInWords(place), "`step` (train.py:5), inside FSDP.forward");
}

// A proxy of multiprocessing has methods that are made from texts.
TEST(ProgramLineTest, NamesTheLibraryBehindAFunctionOfAText) {
  const v1::ProcessStack stack = Stack(
      {Python("_ConnectionBase.recv", "/usr/lib/python3.11/multiprocessing/connection.py", 250),
       Python("BaseProxy._callmethod", "/usr/lib/python3.11/multiprocessing/managers.py", 820),
       Python("get", "<string>", 2), Python("next_rollout", "/x/train.py", 31)});
  EXPECT_EQ(PlaceInWords(FindPlace(stack)),
            "`next_rollout` (train.py:31), waiting in BaseProxy._callmethod");
}

TEST(ProgramLineTest, AFunctionOfTheProgramInACallOfPyTorchIsASignalsHandler) {
  const std::string c10d = "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py";
  const auto is_in_handler = [&](const char* function) {
    const v1::ProcessStack stack =
        Stack({Python("barrier", c10d, 5356), Python("save", "/x/train.py", 12),
               Python(function, "/x/train.py", 19), Python("all_reduce", c10d, 3252),
               Python("train_step", "/x/train.py", 32)});
    return absl::StrContains(FindPlace(stack).functions, kSignalInACall);
  };
  EXPECT_TRUE(is_in_handler("on_usr1"));
  EXPECT_FALSE(is_in_handler("MyGroup.allreduce")) << "a process group of the program";
}

TEST(ProgramLineTest, NamesTheCallOfRayAndNotItsWrappers) {
  const std::string ray = "/opt/venv/lib/python3.11/site-packages/ray/";
  const StackPlace report = FindPlace(
      Stack({Native("poll", kLibc), Python("TrainFnUtils.report", ray + "train/utils.py", 88),
             Python("report", ray + "train/v2/api/train_fn_utils.py", 102),
             Python("requires_train_worker.<locals>._wrap.<locals>._wrapped_fn",
                    ray + "train/v2/_internal/util.py", 299),
             Python("validate", "/x/train.py", 5)}));
  EXPECT_EQ(PlaceInWords(report), "`validate` (train.py:5), waiting in train_fn_utils.report");
  const StackPlace get = FindPlace(Stack(
      {Native("poll", kLibc), Python("get", ray + "_private/worker.py", 2840),
       Python("client_mode_hook.<locals>.wrapper", ray + "_private/client_mode_hook.py", 104),
       Python("wrap_auto_init.<locals>.auto_init_wrapper", ray + "_private/auto_init_hook.py", 22),
       Python("validate", "/x/train.py", 6)}));
  EXPECT_EQ(PlaceInWords(get), "`validate` (train.py:6), waiting in worker.get");
}

TEST(ProgramLineTest, TakesAnotherThreadWhereTheMainThreadIsInLibraries) {
  v1::ProcessStack stack = Stack({Native("poll", kLibc)});
  v1::ThreadStack* other = stack.add_threads();
  other->set_tid(8);
  *other->add_frames() = Python("feed", "/x/train.py", 5);
  EXPECT_EQ(FindPlace(stack).at, "/x/train.py:5 in feed");
  stack.mutable_threads()->DeleteSubrange(1, 1);
  EXPECT_EQ(FindPlace(stack).at, "");
  EXPECT_EQ(FindPlace(stack).functions, " poll ");
  EXPECT_EQ(FindPlace(v1::ProcessStack()).functions, "");
}

TEST(ProgramLineTest, KnowsTheProcessesOfEngines) {
  const auto role = [](const char* name) {
    v1::ProcessStack stack = Stack({Native("poll", kLibc)});
    stack.mutable_threads(0)->set_name(name);
    return std::string(RoleAmong(FindPlace(stack).functions));
  };
  EXPECT_EQ(role("VLLM::Worker_TP"), "a worker of vLLM");
  EXPECT_EQ(role("VLLM::EngineCor"), "an engine core of vLLM");
  EXPECT_EQ(role("VLLM::Other"), "a process of vLLM");
  EXPECT_EQ(role("sglang::schedul"), "a scheduler of SGLang, which runs the model");
  EXPECT_EQ(role("python3"), "");
  EXPECT_EQ(role(""), "");
}

TEST(ProgramLineTest, ShortensNames) {
  const auto name = [](const char* function) { return ShortFunction(Native(function, kApp)); };
  EXPECT_EQ(name("std::vector<int, std::allocator<int> >::operator[](unsigned long)"),
            "std::vector::operator[]");
  EXPECT_EQ(name("Task::operator()(int) const"), "Task::operator()");
  EXPECT_EQ(name("void train::Run<float>(train::Options const&)"), "train::Run");
  EXPECT_EQ(name("main"), "main");
  EXPECT_EQ(name(""), "");
  EXPECT_EQ(ShortFunction(Python("get", "/usr/lib/python3.9/queue.py", 1)), "queue.get");
  EXPECT_EQ(ShortFunction(Python("save", "/x/checkpoint/__init__.py", 1)), "checkpoint.save");
  EXPECT_EQ(ShortFunction(Python("save", "__init__.py", 1)), ".save");
}

void AddThread(int32_t tid, const char* function, const char* inside, v1::ProcessStack* stack) {
  v1::ThreadStack* thread = stack->add_threads();
  thread->set_tid(tid);
  for (const char* name : {inside, function}) {
    v1::Frame* frame = thread->add_frames();
    frame->set_function(name);
    frame->set_module(name == inside ? "/usr/lib/libnccl.so.2" : "/x/job");
    frame->set_file(name == inside ? "" : "/x/job.cc");
    frame->set_line(name == inside ? 0 : 7);
  }
}

// The main thread waits for the thread that is in the call.
TEST(ProgramLineTest, AProcessStandsWhereItsCallingThreadStands) {
  v1::ProcessStack stack;
  stack.set_pid(4000);
  AddThread(4000, "main", "std::thread::join", &stack);
  AddThread(4001, "train", "ncclAllReduce", &stack);
  EXPECT_EQ(FindPlace(stack).at, "/x/job.cc:7 in main");
  stack.add_calling_tids(4999);  // has ended
  stack.add_calling_tids(4001);
  EXPECT_EQ(FindPlace(stack).at, "/x/job.cc:7 in train");
}

TEST(ProgramLineTest, ThreadsInCallsComeFirst) {
  v1::ProcessStack stack;
  stack.set_pid(4000);
  for (int32_t tid = 4000; tid < 4020; ++tid) AddThread(tid, "work", "read", &stack);
  AddThread(4020, "train", "ncclAllReduce", &stack);
  const std::vector<ThreadPlace> places = FindThreadPlaces(stack);
  ASSERT_EQ(places.size(), limits::kThreadPlaces);
  EXPECT_EQ(places[0].tid, 4020u);
}

}  // namespace
}  // namespace rollcall

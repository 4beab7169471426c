// SPDX-License-Identifier: Apache-2.0
// Tests that the library keeps the newest state of each of NCCL's transfers over the network, as
// NCCL reports them to its profiler plugin, and that a reader finds it.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "interpose/segment.h"
#include "preloaded_process.h"

namespace rollcall {
namespace {

constexpr char kSendGpu[] = "8", kSend[] = "9", kReceive[] = "10", kReceiveFlush[] = "11",
               kReceiveGpu[] = "12", kSendPeer[] = "20";

class LibraryNetworkTest : public PreloadedProcessTest {
 protected:
  LibraryNetworkTest() : PreloadedProcessTest(ROLLCALL_STUB_DIR) {}

  std::vector<NetworkSnapshot> After(const std::string& steps, const Environment& more = {}) {
    StartOver();
    std::vector<std::string> command = {NETWORK_STEPS};
    for (const auto step : absl::StrSplit(steps, ' ')) command.emplace_back(step);
    EXPECT_EQ(Run(command, more), 0) << steps << "\n" << Stderr();
    const std::vector<std::filesystem::path> paths = Segments();
    if (paths.empty()) return {};
    auto reader = SegmentReader::Open(paths.front());
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader.ok() ? (*reader)->ReadNetwork() : std::vector<NetworkSnapshot>();
  }

  // The states of the only communicator.
  std::vector<NetworkStateSnapshot> StatesAfter(const std::string& steps,
                                                const Environment& more = {}) {
    const std::vector<NetworkSnapshot> all = After(steps, more);
    EXPECT_EQ(all.size(), 1u);
    return all.size() == 1 ? all[0].states : std::vector<NetworkStateSnapshot>();
  }
  // The wait of the only transfer.
  NetworkWait WaitAfter(const std::string& steps) {
    const std::vector<NetworkStateSnapshot> states = StatesAfter(steps);
    EXPECT_EQ(states.size(), 1u);
    return states.size() == 1 ? states[0].wait : NetworkWait::kNone;
  }
};

std::string State(int step, const char* state) { return absl::StrCat("state=", step, ",", state); }

constexpr char kSends[] = "load=6 init=4,1 coll op=2,3,1 begin=0 ";

TEST_F(LibraryNetworkTest, AStateSaysWhatTheOldestStepWaitsFor) {
  const std::vector<NetworkSnapshot> all =
      After(absl::StrCat(kSends, State(0, kSendGpu), " begin=1 ", State(1, kSendGpu), " ",
                         State(0, kSendPeer), " ", State(0, kSend)));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].comm, 0u);
  EXPECT_EQ(all[0].rank, 1);
  EXPECT_NE(all[0].communicator, 0u);
  EXPECT_TRUE(all[0].is_whole);
  ASSERT_EQ(all[0].states.size(), 1u);
  const NetworkStateSnapshot& state = all[0].states[0];
  EXPECT_EQ(state.channel, 2);
  EXPECT_EQ(state.peer, 3);
  EXPECT_TRUE(state.sends);
  EXPECT_EQ(state.begun, 2u);
  EXPECT_EQ(state.ended, 0u);
  EXPECT_EQ(state.wait, NetworkWait::kSend);
  EXPECT_GT(state.since_ns, 0);
}

TEST_F(LibraryNetworkTest, EachStateOfNcclHasAWait) {
  const std::pair<const char*, NetworkWait> kWaits[] = {{kSendGpu, NetworkWait::kSendGpu},
                                                        {kSendPeer, NetworkWait::kSendPeer},
                                                        {kSend, NetworkWait::kSend},
                                                        {kReceive, NetworkWait::kReceive},
                                                        {kReceiveFlush, NetworkWait::kReceiveFlush},
                                                        {kReceiveGpu, NetworkWait::kReceiveGpu}};
  for (const auto& [state, wait] : kWaits) {
    EXPECT_EQ(WaitAfter(kSends + State(0, state)), wait) << state;
  }
  EXPECT_EQ(WaitAfter("load=6 init=4,1 coll op begin=0"), NetworkWait::kNone);  // not posted
  EXPECT_EQ(WaitAfter(kSends + State(0, "99")), NetworkWait::kNone);
}

TEST_F(LibraryNetworkTest, StepsThatEndCountAndTheNextOneWaits) {
  std::string steps = kSends + State(0, kSend);
  for (int step = 1; step < 20; ++step) {
    absl::StrAppend(&steps, " end=", step - 1, " begin=", step, " ", State(step, kSendGpu));
  }
  const std::vector<NetworkStateSnapshot> states = StatesAfter(steps);
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].begun, 20u);
  EXPECT_EQ(states[0].ended, 19u);
  EXPECT_EQ(states[0].wait, NetworkWait::kSendGpu);
}

TEST_F(LibraryNetworkTest, AStepThatNcclBeginsAgainCountsOnce) {
  const std::vector<NetworkStateSnapshot> states = StatesAfter(
      "load=6 init=4,1 coll op=0,3,0 begin=0 begin=0 begin=0 state=0,10 end=0 begin=1 "
      "begin=1 state=1,10");
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].begun, 2u);
  EXPECT_EQ(states[0].ended, 1u);
  EXPECT_EQ(states[0].wait, NetworkWait::kReceive);
}

TEST_F(LibraryNetworkTest, TheNextOperationStartsOver) {
  const std::vector<NetworkStateSnapshot> states = StatesAfter(
      "load=6 init=4,1 coll op=0,3,1 op=0,3,1 on_op=0 begin=0 state=0,8 end=0 begin=1 "
      "state=1,8 end=1 end_op on_op=1 begin=0 state=0,9");
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].begun, 1u);
  EXPECT_EQ(states[0].ended, 0u);
  EXPECT_EQ(states[0].wait, NetworkWait::kSend);
}

TEST_F(LibraryNetworkTest, DirectionsChannelsAndPeersAreApart) {
  const std::vector<NetworkStateSnapshot> states = StatesAfter(
      "load=6 init=4,1 coll op=0,2,1 begin=0 state=0,8 op=0,2,0 begin=0 state=0,10 op=1,2,1 begin=0 "
      "state=0,9 op=1,3,1 begin=0 state=0,20");
  ASSERT_EQ(states.size(), 4u);
  const auto is = [&](size_t i, int channel, int peer, bool sends, NetworkWait wait) {
    return states[i].channel == channel && states[i].peer == peer && states[i].sends == sends &&
           states[i].wait == wait;
  };
  EXPECT_TRUE(is(0, 0, 2, false, NetworkWait::kReceive));
  EXPECT_TRUE(is(1, 0, 2, true, NetworkWait::kSendGpu));
  EXPECT_TRUE(is(2, 1, 2, true, NetworkWait::kSend));
  EXPECT_TRUE(is(3, 1, 3, true, NetworkWait::kSendPeer));
}

// NCCL has a connection of its own for sends and receives.
TEST_F(LibraryNetworkTest, ALaterSendDoesNotHideTheCollectiveThatHoldsItUp) {
  const char both[] =
      "load=6 init=4,1 coll op=0,2,1 begin=0 state=0,8 state=0,9 p2p op=0,2,1 begin=0 state=0,8";
  EXPECT_EQ(WaitAfter(both), NetworkWait::kSend);
  EXPECT_EQ(WaitAfter(absl::StrCat(both, " on_op=0 end=0 end_op")), NetworkWait::kSendGpu);
}

TEST_F(LibraryNetworkTest, BetweenOperationsNothingWaits) {
  const std::vector<NetworkStateSnapshot> states =
      StatesAfter(absl::StrCat(kSends, State(0, kSend), " end=0 end_op end_parent"));
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].begun, 1u);
  EXPECT_EQ(states[0].ended, 1u);
  EXPECT_EQ(states[0].wait, NetworkWait::kNone);
}

TEST_F(LibraryNetworkTest, AnOperationWithoutAStepShowsNothing) {
  EXPECT_TRUE(After("load=6 init=4,1 coll op").empty());
}

TEST_F(LibraryNetworkTest, CommunicatorsAreApartAndEndedOnesGone) {
  const std::string two = "load=6 init=4,1,1 init=8,2,2 on=0 coll op=0,2,1 begin=0 state=0,8 on=1";
  // The program has one rank number at a time, as an operation of another rank is not recorded.
  std::vector<NetworkSnapshot> all =
      After(two + " op=0,3,1,0,2 begin=0 state=0,9 on=0 op=0,2,1,0,1 begin=0 state=0,20");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].states.at(0).wait, NetworkWait::kSendPeer);
  EXPECT_EQ(all[1].states.at(0).wait, NetworkWait::kSend);
  all = After(two + " op=0,3,1,0,2 begin=0 state=0,9 on=1 finalize");
  EXPECT_TRUE(all.empty());
}

TEST_F(LibraryNetworkTest, VersionsOfTheInterfaceBeforeTheFifthAreNotAsked) {
  for (const int version : {1, 2, 3, 4}) {
    const std::string before =
        absl::StrCat("load=", version, " init=4,1 asks_for=0 coll op=0,3,1 ");
    EXPECT_TRUE(After(before + "!op_has_handle begin=0 state=0,9").empty()) << version;
  }
  for (const int version : {5, 6}) {
    const std::string before = absl::StrCat("load=", version, " init=4,1 asks_for=24 coll ");
    EXPECT_EQ(WaitAfter(before + "op=0,3,1 op_has_handle begin=0 state=0,9"), NetworkWait::kSend);
  }
}

TEST_F(LibraryNetworkTest, AVariableSwitchesItOff) {
  EXPECT_TRUE(After("load=6 init=4,1 asks_for=0 coll op=0,3,1 !op_has_handle begin=0 state=0,9",
                    {{"ROLLCALL_NETWORK", "0"}})
                  .empty());
}

TEST_F(LibraryNetworkTest, ACommunicatorThatTheWrappersRecordHasStatesToo) {
  const std::vector<NetworkSnapshot> all =
      After("wrapped=4,2 asks_for=24 coll op=0,3,1 begin=0 state=0,9");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].rank, 2);
  EXPECT_EQ(all[0].states.at(0).wait, NetworkWait::kSend);
  const SegmentSnapshot segment = PreloadedProcessTest::Read();
  ASSERT_EQ(segment.communicators.size(), 1u);  // the plugin adds none
  EXPECT_EQ(segment.communicators[0].id, all[0].communicator);
  EXPECT_EQ(segment.communicators[0].entered, 0u);
}

TEST_F(LibraryNetworkTest, EachRankOfAProcessHasItsOwnStates) {
  const std::vector<NetworkSnapshot> all = After(
      "wrapped_all=3 on=0 coll op=0,1,1,0,0 begin=0 state=0,8 on=1 op=0,2,1,0,1 begin=0 state=0,20 "
      "on=2 op=0,0,1,0,2 begin=0 state=0,9");
  ASSERT_EQ(all.size(), 3u);
  const NetworkWait kWaits[] = {NetworkWait::kSendGpu, NetworkWait::kSendPeer, NetworkWait::kSend};
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].rank, static_cast<int32_t>(i));
    ASSERT_EQ(all[i].states.size(), 1u);
    EXPECT_EQ(all[i].states[0].wait, kWaits[i]);
  }
}

TEST_F(LibraryNetworkTest, AChildHasItsOwnStates) {
  const std::vector<NetworkSnapshot> all =
      After("wrapped=4,2 coll op=0,3,1 begin=0 state=0,8 split on=1 op=0,0,0 begin=0 state=0,10");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].states.at(0).wait, NetworkWait::kSendGpu);
  EXPECT_EQ(all[1].comm, 1u);
  EXPECT_EQ(all[1].rank, 1);
  EXPECT_EQ(all[1].states.at(0).wait, NetworkWait::kReceive);
}

TEST_F(LibraryNetworkTest, ACommunicatorThatIsNotTheWrappedOneHasNoStates) {
  EXPECT_TRUE(
      After("wrong_by=1 wrapped=4,2 asks_for=0 coll op=0,0,1 !op_has_handle begin=0 state=0,9")
          .empty());
}

TEST_F(LibraryNetworkTest, TheStatesOfAWrappedCommunicatorEndWithIt) {
  EXPECT_TRUE(After("wrapped=4,2 coll op=0,3,1 begin=0 state=0,9 destroy finalize").empty());
  const std::vector<NetworkSnapshot> all = After(
      "wrapped=4,2 coll op=0,3,1 begin=0 state=0,9 finalize destroy wrapped=4,2 op=0,1,0 "
      "begin=0 state=0,10");
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0].states.size(), 1u);
  EXPECT_EQ(all[0].states[0].wait, NetworkWait::kReceive);
}

TEST_F(LibraryNetworkTest, TransfersForAnotherProcessAreNotRecorded) {
  EXPECT_TRUE(After("load=6 init=4,1 coll op=0,3,1,1 !op_has_handle begin=0 state=0,9 end=0 end_op")
                  .empty());
  // The pid of a process in another container may be the same, its rank is not.
  EXPECT_TRUE(
      After("load=6 init=4,1 coll op=0,3,1,0,2 !op_has_handle begin=0 state=0,9 end=0").empty());
}

TEST_F(LibraryNetworkTest, TransfersWithoutAnEntryCount) {
  const std::vector<NetworkSnapshot> all = After("load=6 init=1000,1 coll many=600");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_FALSE(all[0].is_whole);
  EXPECT_LE(all[0].states.size(), 256u);
  EXPECT_GT(all[0].states.size(), 200u);
}

TEST_F(LibraryNetworkTest, EachCommunicatorBringsRoomForMore) {
  const std::vector<NetworkSnapshot> all =
      After("load=6 init=1000,1,1 init=1000,1,2 init=1000,1,3 init=1000,1,4 coll many=600");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(all[0].is_whole);
  EXPECT_EQ(all[0].states.size(), 600u);
}

TEST_F(LibraryNetworkTest, AnotherPluginGetsItsEventsAndOurStatesAreThere) {
  for (const char* mask : {"0", "2", "3"}) {  // nothing; Coll; Group, Coll
    const std::vector<NetworkStateSnapshot> states = StatesAfter(
        "load=6 init=4,1 coll op=0,2,1 begin=0 state=0,9 p2p op=1,2,1 begin=0 state=0,8 end=0 "
        "end_op end_parent",
        {{"NCCL_PROFILER_PLUGIN", OTHER_PROFILER}, {"OTHER_MASK", mask}});
    ASSERT_EQ(states.size(), 2u) << mask;
    EXPECT_EQ(states[0].wait, NetworkWait::kSend);
  }
}

TEST_F(LibraryNetworkTest, AnotherPluginThatSetsTheMaskOnceGetsNothingOfOurs) {
  const std::vector<NetworkSnapshot> all = After(
      "load=6 init=4,1,1 init=4,1,2 asks_for=24 coll op=0,2,1 begin=0 state=0,9 p2p end_parent",
      {{"NCCL_PROFILER_PLUGIN", OTHER_PROFILER}, {"OTHER_MASK", "2"}});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].comm, 1u);
}

TEST_F(LibraryNetworkTest, AnotherPluginThatAsksForStepsGetsThemAlone) {
  for (const char* mask : {"24", "16", "8", "128", "4"}) {
    EXPECT_TRUE(After("load=5 init=4,1 coll op=0,2,1 begin=0 state=0,8 state=0,9 end=0 end_op "
                      "finalize",
                      {{"NCCL_PROFILER_PLUGIN", OTHER_PROFILER}, {"OTHER_MASK", mask}})
                    .empty())
        << mask;
  }
}

// Ranks that hang in a collective of the simulated NCCL.
class SimulatedNetworkTest : public PreloadedProcessTest {
 protected:
  SimulatedNetworkTest() : PreloadedProcessTest(ROLLCALL_SIM_DIR) {}
  void TearDown() override {
    if (job_ > 0) {
      kill(job_, SIGTERM);
      WaitFor(job_);
    }
    PreloadedProcessTest::TearDown();
  }

  static std::vector<std::string> Command(const std::string& scenario, int ranks = 4) {
    return {RANKS,    "-n",    std::to_string(ranks), "--keep-going", "--grace", "1", "--",
            SIM_RANK, scenario};
  }
  void Hang(const std::string& scenario, const std::string& network, const std::string& fault,
            int ranks = 4) {
    job_ = Start(Command(scenario, ranks),
                 {{"ROLLCALL_SIM_NETWORK", network}, {"ROLLCALL_SIM_NETWORK_FAULT", fault}});
  }

  // The states of a rank's transfers in one direction, which its two channels have.
  std::vector<NetworkStateSnapshot> StatesOf(int rank, bool sends) const {
    std::vector<NetworkStateSnapshot> states;
    for (const std::filesystem::path& path : Segments()) {
      auto reader = SegmentReader::Open(path);
      if (!reader.ok()) continue;
      for (const NetworkSnapshot& comm : (*reader)->ReadNetwork()) {
        for (const NetworkStateSnapshot& state : comm.states) {
          if (comm.rank == rank && state.sends == sends) states.push_back(state);
        }
      }
    }
    return states;
  }
  bool Waits(int rank, bool sends, NetworkWait wait) const {
    const std::vector<NetworkStateSnapshot> states = StatesOf(rank, sends);
    for (const NetworkStateSnapshot& state : states) {
      if (state.wait != wait || state.peer != (rank + (sends ? 1 : 3)) % 4) return false;
    }
    return states.size() == 2;
  }
  // Until the rank shows these waits.
  void Expect(int rank, NetworkWait sends, NetworkWait receives) const {
    EXPECT_TRUE(Eventually([&] { return Waits(rank, true, sends); })) << rank << " sends";
    EXPECT_TRUE(Eventually([&] { return Waits(rank, false, receives); })) << rank << " receives";
  }

  pid_t job_ = 0;
};

TEST_F(SimulatedNetworkTest, AHealthyCollectiveEndsAllItsSteps) {
  for (const char* network : {"socket", "ib"}) {
    StartOver();
    EXPECT_EQ(Run(Command("all_agree"), {{"ROLLCALL_SIM_NETWORK", network}}), 0) << Stderr();
    for (int rank = 0; rank < 4; ++rank) {
      for (const bool sends : {true, false}) {
        EXPECT_TRUE(Waits(rank, sends, NetworkWait::kNone));
        for (const NetworkStateSnapshot& state : StatesOf(rank, sends)) {
          EXPECT_EQ(state.begun, 16u);
          EXPECT_EQ(state.ended, 16u);
        }
      }
    }
  }
}

TEST_F(SimulatedNetworkTest, WithoutANetworkThereAreNoStates) {
  EXPECT_EQ(Run(Command("all_agree")), 0) << Stderr();
  EXPECT_EQ(Segments().size(), 4u);
  for (int rank = 0; rank < 4; ++rank) EXPECT_TRUE(StatesOf(rank, true).empty());
}

TEST_F(SimulatedNetworkTest, AStalledKernelHasDataAndNeitherTakesNorSends) {
  Hang("all_agree", "socket", "kernel:2");
  Expect(2, NetworkWait::kSendGpu, NetworkWait::kReceiveGpu);
  // The innocent ones wait for their own kernels, too, but those wait for data.
  for (const int rank : {3, 0, 1}) Expect(rank, NetworkWait::kSendGpu, NetworkWait::kReceive);
}

TEST_F(SimulatedNetworkTest, ALinkThatDropsKeepsTheSend) {
  Hang("all_agree", "socket", "link:1");
  Expect(1, NetworkWait::kSend, NetworkWait::kReceive);
  for (const int rank : {2, 3, 0}) Expect(rank, NetworkWait::kSendGpu, NetworkWait::kReceive);
}

TEST_F(SimulatedNetworkTest, AStoppedProxyThreadPostsNothing) {
  Hang("all_agree", "ib", "proxy:3");
  Expect(0, NetworkWait::kSendGpu, NetworkWait::kReceive);
  Expect(2, NetworkWait::kSendPeer, NetworkWait::kReceive);
  EXPECT_TRUE(StatesOf(3, true).empty());
  EXPECT_TRUE(StatesOf(3, false).empty());
}

TEST_F(SimulatedNetworkTest, AReceiverThatDoesNotTakeHoldsUpTheSender) {
  Hang("all_broadcast", "ib", "take:2");
  EXPECT_TRUE(Eventually([&] { return Waits(1, true, NetworkWait::kSendPeer); }));
  EXPECT_TRUE(Eventually([&] { return Waits(2, false, NetworkWait::kReceiveGpu); }));
  EXPECT_TRUE(Eventually([&] { return Waits(3, false, NetworkWait::kReceive); }));
  EXPECT_TRUE(StatesOf(3, true).empty());  // the end of the chain
}

TEST_F(SimulatedNetworkTest, ASendWithoutAReceiveWaits) {
  Hang("second_send_to_nobody", "socket", "", 2);
  EXPECT_TRUE(Eventually([&] {
    const std::vector<NetworkStateSnapshot> states = StatesOf(0, true);
    return states.size() == 1 && states[0].peer == 1 && states[0].wait == NetworkWait::kSend;
  }));
}

TEST_F(SimulatedNetworkTest, ARankThatDoesNotComeShowsItsEarlierCall) {
  Hang("last_misses_second", "socket", "");
  Expect(0, NetworkWait::kSendGpu, NetworkWait::kReceive);
  Expect(3, NetworkWait::kNone, NetworkWait::kNone);
}

}  // namespace
}  // namespace rollcall

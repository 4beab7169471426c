// SPDX-License-Identifier: Apache-2.0
// PyTorch's gloo groups as the preloaded library records them: positions, arguments, names, and
// exceptions that pass through it. A stub of PyTorch has the real names and arguments.
#include "library_steps.h"

namespace rollcall {
namespace {

using segment::CommState;

class LibraryGlooTest : public PreloadedProcessTest {
 protected:
  LibraryGlooTest() : PreloadedProcessTest(ROLLCALL_STUB_DIR) {}

  std::vector<CommSnapshot> After(const std::string& steps) {
    StartOver();
    std::vector<std::string> command = {GLOO_STEPS};
    for (const auto step : absl::StrSplit(steps, ' ')) command.emplace_back(step);
    EXPECT_EQ(Run(command), 0) << steps << "\n" << Stderr();
    return Read().communicators;
  }
  CommSnapshot CommAfter(const std::string& steps) {
    const std::vector<CommSnapshot> comms = After(steps);
    EXPECT_EQ(comms.size(), 1u);
    return comms.empty() ? CommSnapshot() : comms[0];
  }

  // The messages that the communicator counts: "RANK/TAG: SENDS+RECEIVES", and what threads wait
  // for.
  static std::string Counted(const CommSnapshot& comm) {
    std::string words;
    for (const MessagesSnapshot& with : comm.messages) {
      absl::StrAppend(&words, words.empty() ? "" : ", ", with.peer, "/", with.tag, ": ", with.sends,
                      "+", with.receives);
      if (with.sends_awaited != 0) absl::StrAppend(&words, " send ", with.sends_awaited);
      if (with.receives_awaited != 0) absl::StrAppend(&words, " receive ", with.receives_awaited);
    }
    return words;
  }
};

TEST_F(LibraryGlooTest, AGroupIsACommunicatorOfGlooWithItsName) {
  const std::vector<CommSnapshot> comms = After("group=1,4 pair=0,2 nameless=0,2");
  ASSERT_EQ(comms.size(), 3u);
  EXPECT_EQ(comms[0].kind, CommKind::kGloo);
  EXPECT_EQ(comms[0].state, CommState::kReady);
  EXPECT_EQ(comms[0].rank, 1);
  EXPECT_EQ(comms[0].size, 4);
  EXPECT_EQ(comms[0].name, "default_pg");
  EXPECT_EQ(comms[1].name, "pair");
  EXPECT_EQ(comms[2].name, "3");
  EXPECT_NE(comms[1].id, comms[2].id);
}

TEST_F(LibraryGlooTest, AGroupMadeByHandHasTheNameOfItsPrefix) {
  EXPECT_EQ(CommAfter("by_hand=1,4").name, "weights");
}

TEST_F(LibraryGlooTest, AllMembersComputeOneId) {
  const uint64_t id = CommAfter("group=1,4").id;
  EXPECT_EQ(CommAfter("group=3,4").id, id);
  EXPECT_NE(CommAfter("group=3,5").id, id);
}

TEST_F(LibraryGlooTest, AGroupThatIsMadeAgainIsAnotherOne) {
  const std::vector<CommSnapshot> comms = After("group=1,4 destroy group=1,4");
  ASSERT_EQ(comms.size(), 2u);
  EXPECT_EQ(comms[0].state, CommState::kDestroyed);
  EXPECT_NE(comms[0].id, comms[1].id);
}

TEST_F(LibraryGlooTest, CallsTakePositionsInTheOrderOfTheProgram) {
  const CommSnapshot comm = CommAfter("group=0,2 allreduce=24 broadcast=5,1 barrier monitored");
  EXPECT_EQ(Ops(comm), (std::vector<Op>{Op::kAllReduce, Op::kBroadcast, Op::kBarrier,
                                        Op::kmonitored_barrier}));
  EXPECT_EQ(comm.entered, 4u);
  EXPECT_EQ(comm.records[0].count, 24u);
  EXPECT_STREQ(DtypeName(comm.records[0].dtype), "float32");
  EXPECT_EQ(comm.records[0].peer, kNoPeer);
  EXPECT_EQ(comm.records[1].peer, 1);
  for (size_t i = 0; i < comm.records.size(); ++i) EXPECT_EQ(comm.records[i].position, i);
}

TEST_F(LibraryGlooTest, ACallIsDoneWhenItsWorkAndAllBeforeAreDone) {
  EXPECT_EQ(CommAfter("group=0,2 allreduce allreduce").finished, 0u);
  EXPECT_EQ(CommAfter("group=0,2 allreduce allreduce finish").finished, 1u);
  EXPECT_EQ(CommAfter("group=0,2 allreduce allreduce finish fail").finished, 2u);
}

TEST_F(LibraryGlooTest, ACallOfSeveralPartsIsOneCall) {
  const CommSnapshot half = CommAfter("group=0,2 alltoall finish");
  EXPECT_EQ(Ops(half), std::vector<Op>{Op::kAlltoAll});
  EXPECT_EQ(half.finished, 0u);
  EXPECT_EQ(CommAfter("group=0,2 alltoall finish finish").finished, 1u);
}

TEST_F(LibraryGlooTest, ACallThatThrowsTakesNoPosition) {
  const CommSnapshot comm =
      CommAfter("group=0,2 allreduce finish !allreduce !alltoall=2 broadcast");
  EXPECT_EQ(comm.entered, 2u);
  ASSERT_EQ(comm.records.size(), 4u);
  EXPECT_NE(comm.records[1].result, 0);
  EXPECT_EQ(comm.records[3].position, 1u);
  EXPECT_EQ(comm.signature, CommAfter("group=0,2 allreduce broadcast").signature);
}

TEST_F(LibraryGlooTest, AnExceptionEndsTheWaitOfItsThread) {
  const CommSnapshot comm = CommAfter("group=0,2 allreduce !wait !monitored allreduce");
  EXPECT_EQ(comm.entered, 3u);  // others may have seen the monitored barrier
  EXPECT_TRUE(Read().blocked.empty());
}

TEST_F(LibraryGlooTest, AWaitForAKeyHasTheKeyAndTheTimeOut) {
  After("group=0,2 end key");
  const std::vector<BlockedSnapshot> blocked = Read().blocked;
  ASSERT_EQ(blocked.size(), 1u);
  EXPECT_EQ(blocked[0].op, static_cast<uint32_t>(Op::kstore_wait));
  EXPECT_EQ(blocked[0].comm, segment::kNoComm);
  EXPECT_EQ(blocked[0].key, "/saved/step 7");
  EXPECT_EQ(blocked[0].keys, 2u);
  EXPECT_EQ(blocked[0].key_timeout_ms, 300000u);
}

TEST_F(LibraryGlooTest, RecordsTheStoreTimeoutOfAGet) {
  After("group=0,2 end get");
  const std::vector<BlockedSnapshot> blocked = Read().blocked;
  ASSERT_EQ(blocked.size(), 1u);
  EXPECT_EQ(blocked[0].key, "ready");
  EXPECT_EQ(blocked[0].keys, 1u);
  EXPECT_EQ(blocked[0].key_timeout_ms, segment::kUnknownTimeout);
}

// Without the word in which the cut lies, but with the number of the whole key.
TEST_F(LibraryGlooTest, OfALongKeyTheEndIsKept) {
  After("group=0,2 end long");
  const std::vector<BlockedSnapshot> blocked = Read().blocked;
  ASSERT_EQ(blocked.size(), 1u);
  EXPECT_TRUE(absl::StartsWith(blocked[0].key, "... (")) << blocked[0].key;
  EXPECT_TRUE(absl::EndsWith(blocked[0].key, ")/the end")) << blocked[0].key;
  EXPECT_EQ(blocked[0].key_timeout_ms, 0u);
}

TEST_F(LibraryGlooTest, LongKeysThatEndAlikeStayDifferent) {
  After("group=0,2 end long");
  const std::string one = Read().blocked.at(0).key;
  After("group=0,2 end alike");
  const std::string other = Read().blocked.at(0).key;
  EXPECT_NE(one, other);
  EXPECT_TRUE(absl::EndsWith(other, "/the end")) << other;
}

// Also more waits than there is room for, had each kept its entry.
TEST_F(LibraryGlooTest, AWaitForAKeyEndsInGoodOrderAndByException) {
  std::string steps = "group=0,2";
  for (int i = 0; i < 5; ++i) steps += " key !key get !get";
  After(steps + " allreduce end key");
  ASSERT_EQ(Read().blocked.size(), 1u);
  EXPECT_EQ(Read().blocked[0].key, "/saved/step 7");
  EXPECT_EQ(CommAfter(steps + " allreduce").entered, 1u);
  EXPECT_TRUE(Read().blocked.empty());
}

TEST_F(LibraryGlooTest, AGroupThatWaitsForAMemberHasItsKey) {
  After("end group=0,2");
  const std::vector<BlockedSnapshot> blocked = Read().blocked;
  ASSERT_EQ(blocked.size(), 1u);
  EXPECT_EQ(blocked[0].op, static_cast<uint32_t>(Op::kProcessGroupGloo));
  EXPECT_EQ(blocked[0].comm, 0u);
  EXPECT_EQ(blocked[0].key, "/default_pg/0//cpu//0/1");
}

// A launcher waits in stores, too.
TEST_F(LibraryGlooTest, WithoutAGroupNoWaitForAKeyIsRecorded) {
  StartOver();
  EXPECT_EQ(Run({GLOO_STEPS, "key", "get"}), 0);
  EXPECT_TRUE(Segments().empty());
}

TEST_F(LibraryGlooTest, AGroupWhoseCreationThrowsHasFailed) {
  const std::vector<CommSnapshot> comms = After("!group=0,2 pair=0,2 allreduce");
  ASSERT_EQ(comms.size(), 2u);
  EXPECT_EQ(comms[0].state, CommState::kFailed);
  EXPECT_EQ(comms[1].entered, 1u);
}

TEST_F(LibraryGlooTest, AJumpOutOfACallEndsItByTheNextCall) {
  const CommSnapshot comm =
      CommAfter("group=0,2 ^monitored allreduce ^wait allreduce finish finish");
  EXPECT_EQ(comm.entered, 3u);
  EXPECT_EQ(comm.finished, 3u);
  EXPECT_TRUE(Read().blocked.empty());
  EXPECT_EQ(CommAfter("group=0,2 ^send send wait").p2p_entered, 1u);
  const std::vector<CommSnapshot> comms = After("^group=0,2 pair=0,2 allreduce");
  ASSERT_EQ(comms.size(), 2u);
  EXPECT_EQ(comms[0].state, CommState::kFailed);
  EXPECT_EQ(comms[1].entered, 1u);
}

// Also more jumps than there is room for keys, had each kept its entry.
TEST_F(LibraryGlooTest, EndsAKeyWaitLeftByLongjmpAtTheNextCall) {
  std::string steps = "group=0,2";
  for (int i = 0; i < 5; ++i) steps += " ^key ^get";
  EXPECT_EQ(CommAfter(steps + " allreduce").entered, 1u);
  EXPECT_TRUE(Read().blocked.empty());
  After(steps + " end key");
  ASSERT_EQ(Read().blocked.size(), 1u);
  EXPECT_EQ(Read().blocked[0].key, "/saved/step 7");
}

TEST_F(LibraryGlooTest, EndsGroupAndMemberWaitsLeftByLongjmp) {
  std::string steps;
  for (int i = 0; i < 10; ++i) steps += "^pair=0,2 ";
  const std::vector<CommSnapshot> comms = After(steps + "group=0,2 allreduce");
  ASSERT_EQ(comms.size(), 11u);
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(comms[i].state, CommState::kFailed);
  EXPECT_EQ(comms[10].entered, 1u);
  EXPECT_TRUE(Read().blocked.empty());
  After(steps + "end key");
  ASSERT_EQ(Read().blocked.size(), 1u);
  EXPECT_EQ(Read().blocked[0].op, static_cast<uint32_t>(Op::kstore_wait));
  EXPECT_EQ(Read().blocked[0].comm, segment::kNoComm);
  EXPECT_EQ(Read().blocked[0].key, "/saved/step 7");
}

TEST_F(LibraryGlooTest, AJumpOutOfACallLeavesTheStackToTheProgram) {
  const std::vector<CommSnapshot> comms = After("group=0,2 allreduce finish jump allreduce finish");
  ASSERT_EQ(comms.size(), 2u);
  EXPECT_EQ(comms[0].state, CommState::kReady);
  EXPECT_EQ(comms[1].state, CommState::kFailed);
}

TEST_F(LibraryGlooTest, CallsInsideOfACallEndWell) {
  EXPECT_EQ(CommAfter("group=0,2 interrupted").state, CommState::kReady);
  EXPECT_TRUE(Read().blocked.empty());
  StartOver();
  EXPECT_EQ(Run({GLOO_STEPS, "group=0,2", "forked"}), 0) << Stderr();
}

TEST_F(LibraryGlooTest, MessagesHaveCountsOfTheirOwn) {
  const CommSnapshot comm = CommAfter("group=0,2 send=16,1 wait recv=16,1 wait allreduce");
  EXPECT_EQ(comm.entered, 1u);
  EXPECT_EQ(comm.p2p_entered, 2u);
  EXPECT_EQ(comm.p2p_finished, 2u);
  EXPECT_EQ(Ops(comm), (std::vector<Op>{Op::kSend, Op::kRecv, Op::kAllReduce}));
  EXPECT_EQ(comm.records[0].peer, 1);
  EXPECT_EQ(comm.records[0].count, 16u);
}

TEST_F(LibraryGlooTest, AMessageThatNoThreadWaitsForIsNotOpen) {
  EXPECT_EQ(CommAfter("group=0,2 send send").p2p_finished, 2u);
  EXPECT_EQ(CommAfter("group=0,2 send wait send !wait").p2p_finished, 2u);
  EXPECT_EQ(CommAfter("group=0,2 !send send").p2p_entered, 1u);
}

TEST_F(LibraryGlooTest, AMessageWithATagIsNotMatchedByItsOrder) {
  EXPECT_EQ(CommAfter("group=0,2 send=8,1,0 send=8,1,7 wait").p2p_entered, 1u);
}

TEST_F(LibraryGlooTest, MessagesAreCountedForEachRankAndTag) {
  const CommSnapshot comm =
      CommAfter("group=0,3 send=8,1,7 wait send=8,1,7 send=8,2,7 wait recv=8,1,9 wait send wait");
  EXPECT_EQ(Counted(comm), "1/7: 2+0, 1/9: 0+1, 2/7: 1+0");
  EXPECT_EQ(comm.p2p_entered, 1u);
  EXPECT_TRUE(Read().blocked.empty());
}

TEST_F(LibraryGlooTest, AThreadWaitsForTheMessageWithTheTag) {
  const CommSnapshot comm = CommAfter("group=0,2 recv=8,1,7 wait recv=8,1,7 end wait");
  EXPECT_EQ(Counted(comm), "1/7: 0+2 receive 2");
  ASSERT_EQ(Read().blocked.size(), 1u);
  EXPECT_EQ(Read().blocked[0].op, static_cast<uint32_t>(Op::kRecv));
  EXPECT_EQ(Counted(CommAfter("group=0,2 send=8,1,7 end wait")), "1/7: 1+0 send 1");
}

TEST_F(LibraryGlooTest, AReceiveFromAnyRankCountsWithTheRankThatSent) {
  EXPECT_EQ(Counted(CommAfter("group=0,2 any=8,7 end wait")), "-1/7: 0+1 receive 1");
  EXPECT_EQ(Counted(CommAfter("group=0,2 any=8,7 wait any wait any")),
            "-1/0: 0+1, -1/7: 0+0, 1/0: 0+1, 1/7: 0+1");
}

TEST_F(LibraryGlooTest, AReceiveThatIsGivenUpProvesNothing) {
  for (const char* leave : {"!", "^"}) {
    const CommSnapshot comm =
        CommAfter(absl::StrCat("group=0,2 recv=8,1,7 ", leave, "wait allreduce"));
    EXPECT_EQ(Counted(comm), "1/7: 0+1") << leave;
    EXPECT_TRUE(comm.messages_cancelled) << leave;
    EXPECT_TRUE(CommAfter(absl::StrCat("group=0,2 ", leave, "any allreduce")).messages_cancelled);
  }
  EXPECT_FALSE(CommAfter("group=0,2 recv=8,1,7 wait").messages_cancelled);
}

// More than there is room for, so their waits are not seen.
TEST_F(LibraryGlooTest, ManyOpenMessagesAreCountedAll) {
  std::string steps = "group=0,2";
  for (int i = 0; i < 50; ++i) steps += " recv=8,1,7";
  EXPECT_EQ(Counted(CommAfter(steps + " end wait")), "1/7: 0+50");
}

TEST_F(LibraryGlooTest, MessagesSideBySideAreAGroup) {
  const CommSnapshot comm = CommAfter("group=0,2 send wait send recv wait");
  ASSERT_EQ(comm.records.size(), 3u);
  EXPECT_NE(comm.records[0].group, comm.records[1].group);
  EXPECT_EQ(comm.records[1].group, comm.records[2].group);
}

}  // namespace
}  // namespace rollcall

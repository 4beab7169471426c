// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/job_room.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

const JobKey kFirst("train", 0), kSecond("train", 1);
const Owner kAda = {"ada", "node-1"}, kBob = {"bob", "node-2"};
const Owner kUnknown = {kUnknownUser, "node-1"};

TEST(JobRoomTest, CountsTheGuestsOfAllAttemptsOfAJob) {
  JobRoom room;
  room.AddJob(kFirst, kAda);
  room.AddJob(kSecond, kAda);
  room.AddProcess(kFirst, kAda);
  room.AddProcess(kFirst, kBob);
  room.AddProcess(kSecond, kBob);
  EXPECT_EQ(room.CountGuests(kFirst, "bob"), 2u);
  EXPECT_EQ(room.CountGuests(kFirst, "ada"), 0u);
  room.RemoveJob(kFirst);
  EXPECT_EQ(room.CountGuests(kFirst, "bob"), 1u);
}

TEST(JobRoomTest, GivesAJobToTheFirstUserWhoIsKnown) {
  JobRoom room;
  room.AddJob(kFirst, kUnknown);
  room.AddProcess(kFirst, kUnknown);
  room.AddProcess(kFirst, kBob);
  room.AddProcess(kFirst, kAda);
  EXPECT_EQ(room.OwnerOf(kFirst)->user, "bob");
  EXPECT_EQ(room.CountGuests(kFirst, "ada"), 1u);
}

TEST(JobRoomTest, AJobWhoseProcessesHaveAllEndedMakesRoomFirst) {
  JobRoom room;
  for (const JobKey& job : {kFirst, kSecond}) {
    room.AddJob(job, kAda);
    room.AddProcess(job, kAda);
  }
  room.AddProcess(kSecond, kAda);
  room.SetEnded(kFirst, true);
  EXPECT_FALSE(room.IsAlive(kFirst));
  EXPECT_EQ(room.MakesRoomForJob(kAda, true), kFirst);
  room.SetEnded(kFirst, false);
  EXPECT_TRUE(room.IsAlive(kFirst));
  EXPECT_EQ(room.MakesRoomForProcess(kBob, false), std::nullopt) << "it has ended itself";
}

}  // namespace
}  // namespace rollcall

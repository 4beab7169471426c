// SPDX-License-Identifier: Apache-2.0
// What people add to an incident, and what they may not.
#include "daemon/incidents/incident_actions.h"

#include <gtest/gtest.h>

#include <string>

namespace rollcall {
namespace {

constexpr int64_t kNow = int64_t{1'000'000'000} * 1'700'000'000 + 5;

TEST(AddNote, KeepsWhoAndWhenInTheOrderOfTime) {
  v1::Incident incident;
  ASSERT_TRUE(AddNote("ada", " the switch of rack 4 \n", kNow, &incident).ok());
  ASSERT_TRUE(AddNote("bob", "replaced", kNow + 1, &incident).ok());
  ASSERT_EQ(incident.notes_size(), 2);
  EXPECT_EQ(incident.notes(0).who(), "ada");
  EXPECT_EQ(incident.notes(0).text(), "the switch of rack 4");
  EXPECT_EQ(incident.notes(0).at().seconds(), 1'700'000'000);
  EXPECT_EQ(incident.notes(0).at().nanos(), 5);
  EXPECT_EQ(incident.notes(1).text(), "replaced");
}

TEST(AddNote, RefusesNoTextTooLongATextAndTooManyNotes) {
  v1::Incident incident;
  EXPECT_TRUE(absl::IsInvalidArgument(AddNote("ada", " ", kNow, &incident)));
  const std::string longest(kMostNoteBytes, 'x');
  EXPECT_TRUE(absl::IsOutOfRange(AddNote("ada", longest + "x", kNow, &incident)));
  EXPECT_EQ(incident.notes_size(), 0);
  for (int i = 0; i < kMostNotes; ++i) ASSERT_TRUE(AddNote("ada", longest, kNow, &incident).ok());
  EXPECT_EQ(incident.notes(0).text(), longest) << "nothing is cut";
  EXPECT_TRUE(absl::IsFailedPrecondition(AddNote("ada", "one more", kNow, &incident)));
  EXPECT_EQ(incident.notes_size(), kMostNotes);
}

TEST(AddNote, HidesWhatLooksLikeASecret) {
  v1::Incident incident;
  ASSERT_TRUE(AddNote("ada", "curl -u me:hunter2 https://x works", kNow, &incident).ok());
  EXPECT_EQ(incident.notes(0).text(), "curl -u me:[redacted] https://x works");
  ASSERT_TRUE(AddNote("ada", "\x1b[1mpassword\x1b[0m=hunter2\nx", kNow, &incident).ok());
  EXPECT_EQ(incident.notes(1).text(), "password=[redacted] x");
}

TEST(Acknowledge, IsOnePersonsUntilItIsTakenBack) {
  v1::Incident incident;
  EXPECT_TRUE(absl::IsFailedPrecondition(TakeBackAcknowledgement(&incident)));
  ASSERT_TRUE(Acknowledge("ada", kNow, &incident).ok());
  ASSERT_TRUE(Acknowledge("ada", kNow + 5, &incident).ok());
  EXPECT_EQ(incident.acknowledged().at().nanos(), 5) << "the first time counts";
  const absl::Status other = Acknowledge("bob", kNow, &incident);
  EXPECT_TRUE(absl::IsFailedPrecondition(other));
  EXPECT_NE(std::string(other.message()).find("ada"), std::string::npos) << other;
  ASSERT_TRUE(TakeBackAcknowledgement(&incident).ok());
  ASSERT_TRUE(Acknowledge("bob", kNow, &incident).ok());
  EXPECT_EQ(incident.acknowledged().who(), "bob");
}

}  // namespace
}  // namespace rollcall

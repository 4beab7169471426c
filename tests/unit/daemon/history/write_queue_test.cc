// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/write_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/history/history_write.h"

namespace rollcall {
namespace {

v1::Incident Incident(int number, const std::string& state) {
  v1::Incident incident;
  incident.set_id(absl::StrCat("train-", number));
  incident.set_job("train");
  incident.set_state(state);
  incident.mutable_confirmed_at()->set_seconds(1);
  return incident;
}

v1::HistoryWrite Hosts(const std::string& job) { return WriteOfHosts(JobKey(job), {"a"}, 5); }

// What waits, in its order. Takes it out.
std::vector<std::string> Take(WriteQueue* queue) {
  std::vector<std::string> taken;
  while (const auto first = queue->First()) {
    taken.push_back(first->incident.empty()
                        ? absl::StrCat("hosts of ", first->write->hosts().job().job())
                        : absl::StrCat(first->incident, " ", first->write->incident().state()));
    queue->Remove(*first);
  }
  return taken;
}

using Taken = std::vector<std::string>;

TEST(WriteQueue, KeepsTheNewestStateOfAnIncidentInThePlaceOfTheFirst) {
  const HistoryKeeperOptions options;
  WriteQueue queue(options);
  queue.Save(Incident(1, "suspected"));
  queue.Add(Hosts("train"), nullptr);
  const uint64_t order = queue.NextOrder();
  queue.Save(Incident(1, "confirmed"));
  EXPECT_EQ(queue.Find("train-1")->state(), "confirmed");
  EXPECT_EQ(queue.counts().incidents, 1u);
  EXPECT_FALSE(queue.HasWritten(order));
  EXPECT_EQ(Take(&queue), (Taken{"train-1 confirmed", "hosts of train"}));
  EXPECT_TRUE(queue.HasWritten(order));
}

TEST(WriteQueue, KeepsAStateThatComesWhileAnOlderOneIsWritten) {
  const HistoryKeeperOptions options;
  WriteQueue queue(options);
  queue.Save(Incident(1, "suspected"));
  const auto written = queue.First();
  queue.Save(Incident(1, "confirmed"));
  queue.Remove(*written);
  EXPECT_EQ(Take(&queue), Taken{"train-1 confirmed"});
}

TEST(WriteQueue, DropsTheOldestOfItsKindBeyondALimit) {
  HistoryKeeperOptions options;
  options.most_waiting = 1;
  options.most_notes = 2;
  WriteQueue queue(options);
  for (const char* job : {"a", "b", "c"}) queue.Add(Hosts(job), nullptr);
  for (int number : {1, 2}) queue.Save(Incident(number, "confirmed"));
  EXPECT_EQ(queue.counts().lost, 2u);
  EXPECT_FALSE(queue.Find("train-1").has_value());
  EXPECT_EQ(Take(&queue), (Taken{"hosts of b", "hosts of c", "train-2 confirmed"}));
}

TEST(WriteQueue, HoldsWhatIsAboutAnUnprovenJobUntilItIsReleasedOrDropped) {
  bool is_unproven = true;
  HistoryKeeperOptions options;
  options.is_unproven = [&is_unproven](const JobId& job) {
    return is_unproven && job.job != "mine";
  };
  options.token_of = [](const JobId&) { return 7; };
  WriteQueue queue(options);
  queue.Add(Hosts("train"), nullptr);
  queue.Save(Incident(1, "confirmed"));
  queue.Add(Hosts("mine"), nullptr);
  queue.Add(Hosts("other"), nullptr);
  EXPECT_EQ(Take(&queue), Taken{"hosts of mine"});
  is_unproven = false;
  queue.Add(Hosts("train"), nullptr);
  EXPECT_TRUE(queue.IsEmpty()) << "it must not overtake what is held";
  queue.DropHeld({kDefaultTenant, "other"});
  queue.ReleaseHeld({kDefaultTenant, "other"});
  queue.ReleaseHeld({kDefaultTenant, "train"});
  EXPECT_EQ(queue.First()->write->token(), 7) << "of the moment in which it was released";
  EXPECT_EQ(Take(&queue), (Taken{"train-1 confirmed", "hosts of train", "hosts of train"}));
}

TEST(WriteQueue, TakesNoMoreAfterItsEnd) {
  const HistoryKeeperOptions options;
  WriteQueue queue(options);
  queue.End();
  queue.Save(Incident(1, "confirmed"));
  queue.Add(Hosts("train"), nullptr);
  EXPECT_TRUE(queue.IsEmpty());
}

}  // namespace
}  // namespace rollcall

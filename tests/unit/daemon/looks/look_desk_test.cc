// SPDX-License-Identifier: Apache-2.0
#include "daemon/looks/look_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/durations.h"
#include "daemon/looks/ask_ras.h"
#include "daemon/looks/judge.h"
#include "listed_ranks.h"

namespace rollcall {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int kRankThatSleeps = 1;

// Agents that answer at once; and a clock that goes on by a quarter of a second with each look at
// it.
class LookDeskTest : public testing::Test {
 protected:
  explicit LookDeskTest(const LookDesk::Sizes& most = {}) : most_(most) {}

  void SetUp() override {
    book_.Set(AgentOf("node-1"), ListOfRanks(Listed{0}, Listed{1}));
    book_.Set(AgentOf("node-2"), ListOfRanks(Listed{2}, Listed{3}));
  }

  bool Answer(const std::string& agent, const v1::TakeStacks& asked) {
    ++asked_[agent];
    EXPECT_TRUE(asked.children());
    if (gone_.count(agent) != 0) return false;
    if (silent_.count(agent) != 0) return true;
    for (const v1::ProcessRef& process : asked.processes()) {
      v1::StackReply reply;
      reply.set_request(asked.request());
      reply.set_start_time(process.start_time());
      const bool sleeps = agent == AgentOf("node-1").id && process.pid() == 4000 + kRankThatSleeps;
      FillStack(process.pid(), sleeps, reply.mutable_stack());
      reply.mutable_evidence()->set_liveness(v1::Evidence::ALIVE);
      reply.mutable_evidence()->set_state("S");
      AgentName name;
      name.id = agent;
      EXPECT_TRUE(desk_.OnStackReply(name, reply));
    }
    return true;
  }

  static void AddFrame(const char* function, const char* file, int line, v1::ThreadStack* thread) {
    v1::Frame* frame = thread->add_frames();
    frame->set_function(function);
    frame->set_file(file);
    frame->set_line(line);
    frame->set_python(*file != '\0');
    if (*file == '\0') frame->set_module("/usr/lib/libtorch_cpu.so");
  }

  static void FillStack(int32_t pid, bool sleeps, v1::ProcessStack* stack) {
    stack->set_pid(pid);
    stack->set_cpu_seconds(1);
    stack->set_moved_bytes(0);
    v1::ThreadStack* thread = stack->add_threads();
    thread->set_tid(pid);
    thread->set_state("S");
    if (sleeps) {
      AddFrame("pthread_mutex_lock", "", 0, thread);
      AddFrame("validate", "train.py", 7, thread);
    } else {
      AddFrame("gloo::transport::tcp::UnboundBuffer::waitRecv(int*, std::chrono::duration)", "", 0,
               thread);
      AddFrame("all_reduce", "train.py", 9, thread);
    }
    AddFrame("main", "train.py", 30, thread);
  }

  absl::StatusOr<std::vector<v1::HostLook>> Look(v1::LookRequest request = {}) {
    if (request.job().empty()) request.set_job("train.py");
    return desk_.Look(request, Tenants::All(), "ann", [this] { return goes_on_; });
  }

  bool AnswerFacts(const std::string& agent, const v1::GatherHostFacts& asked) {
    if (has_old_agents_) return true;
    EXPECT_EQ(asked.processes_size(), 2);
    v1::HostFactsReply reply;
    reply.set_request(asked.request());
    reply.mutable_facts()->add_facts()->set_text(agent);
    AgentName name;
    name.id = agent;
    EXPECT_TRUE(desk_.OnHostFacts(name, reply));
    return true;
  }

  bool AnswerRanks(const std::string& agent, const v1::LookAtRanks& asked) {
    AgentName name;
    name.id = agent;
    v1::LookAtRanksReply reply;
    reply.set_request(asked.request());
    if (asked.ask_ras()) {
      ras_asked_.push_back(asked);
      if (!has_ras_) return true;
      reply.mutable_ras()->set_text(Counts());
      desk_.OnRanks(name, reply);
      return true;
    }
    if (has_old_agents_) return true;
    EXPECT_EQ(asked.processes_size(), 2);
    v1::LogEnd* log = reply.add_logs();
    log->set_path("/x/train.log");
    log->set_quiet_seconds(std::numeric_limits<double>::infinity());
    log->add_pids(asked.processes(1).pid());
    log->add_pids(1);  // of no rank
    for (int i = 0; i < 100; ++i) log->add_lines(std::string(10'000, 'x'));
    reply.add_logs()->add_pids(1);
    for (const v1::ProcessRef& rank : asked.processes()) {
      if (has_nccl_) reply.add_of_nccl(rank.pid());
    }
    reply.add_of_nccl(1);
    desk_.OnRanks(name, reply);
    return true;
  }

  // The counts of the whole job, of which rank 1 is one call behind.
  static std::string Counts() {
    std::vector<std::string> ranks;
    for (int rank = 0; rank < 4; ++rank) {
      ranks.push_back(absl::StrCat("{\"rank\": ", rank, ", \"host\": \"10.0.0.", rank / 2,
                                   "\", \"pid\": ", 4000 + rank % 2, ", \"cuda_dev\": 0, ",
                                   "\"collective_counts\": {\"AllReduce\": ", rank == 1 ? 4 : 5,
                                   "}}"));
    }
    return absl::StrCat("{\"nccl_version\": \"2.29.2\", \"communicators\": [{\"hash\": ",
                        "\"0xa\", \"ranks\": [", absl::StrJoin(ranks, ", "), "]}]}");
  }

  std::set<std::string> gone_, silent_;
  bool has_nccl_ = false, has_ras_ = true;
  std::vector<v1::LookAtRanks> ras_asked_;
  bool has_old_agents_ = false;
  std::map<std::string, int> asked_;
  bool goes_on_ = true;
  int64_t now_ns_ = 1000 * kSecond;
  const LookDesk::Sizes most_;
  UnrecordedBook book_;
  LookDesk desk_{[this](const std::string& agent, const v1::DaemonMessage& message) {
                   if (message.has_gather_host_facts())
                     return AnswerFacts(agent, message.gather_host_facts());
                   if (message.has_look_at_ranks())
                     return AnswerRanks(agent, message.look_at_ranks());
                   return Answer(agent, message.take_stacks());
                 },
                 &book_, [this] { return now_ns_ += kSecond / 4; }, most_};
};

TEST_F(LookDeskTest, TakesThreeSamplesOfEachRankOverTheTime) {
  const auto looks = Look();
  ASSERT_TRUE(looks.ok()) << looks.status();
  ASSERT_THAT(*looks, SizeIs(2));
  for (const v1::HostLook& look : *looks) {
    for (const v1::ProcessLook& rank : look.processes()) {
      ASSERT_THAT(rank.samples(), SizeIs(3));
      EXPECT_GE(rank.samples(2).taken_ns() - rank.samples(0).taken_ns(), 6 * kSecond);
      EXPECT_EQ(rank.unseen(), "");
      EXPECT_EQ(rank.process().evidence().liveness(), v1::Evidence::ALIVE);
    }
  }
}

TEST_F(LookDeskTest, AsksForFactsAboutEachHostOnce) {
  const auto looks = Look();
  ASSERT_TRUE(looks.ok()) << looks.status();
  ASSERT_THAT(*looks, SizeIs(2));
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_THAT((*looks)[i].host_facts().facts(), SizeIs(1));
    EXPECT_EQ((*looks)[i].host_facts().facts(0).text(), AgentOf((*looks)[i].host()).id);
  }
}

TEST_F(LookDeskTest, HasTheEndsOfTheLogsOfItsRanks) {
  const auto looks = Look();
  ASSERT_TRUE(looks.ok()) << looks.status();
  ASSERT_THAT(looks->front().logs(), SizeIs(1));
  const v1::LogEnd& log = looks->front().logs(0);
  EXPECT_EQ(log.path(), "/x/train.log");
  EXPECT_EQ(log.quiet_seconds(), 0);
  EXPECT_THAT(log.pids(), ElementsAre(looks->front().processes(1).process().pid()));
  EXPECT_THAT(log.lines(), SizeIs(20));
  EXPECT_LT(log.lines(0).size(), 1000u);
  const std::vector<LookedAtJob> jobs = JudgeLooks(*looks);
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_THAT(jobs[0].logs, SizeIs(2));
}

TEST_F(LookDeskTest, AJobWithoutNcclIsNotAskedForItsCounts) {
  ASSERT_TRUE(Look().ok());
  EXPECT_THAT(ras_asked_, IsEmpty());
}

TEST_F(LookDeskTest, AsksTheRasOfAJobThatHangsOnceOnOneHost) {
  has_nccl_ = true;
  const auto looks = Look();
  ASSERT_TRUE(looks.ok()) << looks.status();
  ASSERT_THAT(ras_asked_, SizeIs(1));
  EXPECT_EQ(ras_asked_[0].processes_size(), 2);
  EXPECT_FALSE(ras_asked_[0].changes_communicators());
  ASSERT_THAT(looks->front().ras(), SizeIs(1));
  EXPECT_THAT(looks->front().ras(0).asked_for(), ElementsAre(4000, 4001));
  const std::vector<LookedAtJob> jobs = JudgeWithRas(*looks);
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_THAT(jobs[0].incident.verdicts(0).evidence(),
              Contains(HasSubstr("NCCL's RAS blames the same")));
}

TEST_F(LookDeskTest, AsksNoRasWhereTheCallerDoesNotWantItOrSeesAPart) {
  has_nccl_ = true;
  v1::LookRequest request;
  request.set_without_ras(true);
  ASSERT_TRUE(Look(request).ok());
  request.set_without_ras(false);
  request.add_hosts("node-1");
  ASSERT_TRUE(Look(request).ok());
  EXPECT_THAT(ras_asked_, IsEmpty());
}

TEST_F(LookDeskTest, AnAgentThatAnswersNoQuestionToRasHoldsUpNoLook) {
  has_nccl_ = true;
  has_ras_ = false;
  const int64_t begun_ns = now_ns_;
  const auto looks = Look();
  ASSERT_TRUE(looks.ok()) << looks.status();
  EXPECT_LT(now_ns_ - begun_ns, 60 * kSecond);
  EXPECT_THAT(looks->front().ras(0).error(), HasSubstr("did not answer in time"));
}

TEST_F(LookDeskTest, DoesNotWaitLongForFactsOfAnEarlierRelease) {
  has_old_agents_ = true;
  const int64_t begun_ns = now_ns_;
  const auto looks = Look();
  ASSERT_TRUE(looks.ok()) << looks.status();
  EXPECT_FALSE(looks->front().has_host_facts());
  EXPECT_THAT(looks->front().processes(0).samples(), SizeIs(3));
  EXPECT_LT(now_ns_ - begun_ns, 12 * kSecond);
}

TEST_F(LookDeskTest, TheLookIsJudgedAsThatOfACommand) {
  const auto looks = Look();
  ASSERT_TRUE(looks.ok()) << looks.status();
  const std::vector<LookedAtJob> jobs = JudgeLooks(*looks);
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(jobs[0].outcome, LookedAtJob::Outcome::kHangs) << jobs[0].why;
  const v1::Verdict& verdict = jobs[0].incident.verdicts(0);
  ASSERT_THAT(verdict.culprits(), SizeIs(1));
  EXPECT_EQ(verdict.culprits(0).rank(), kRankThatSleeps);
  EXPECT_EQ(verdict.culprits(0).host(), "node-1");
  EXPECT_EQ(jobs[0].incident.job(), "train.py");
}

TEST_F(LookDeskTest, AHostWithoutAnswerIsNamedAndTheRestIsLookedAt) {
  silent_ = {AgentOf("node-2").id};
  const auto looks = Look();
  ASSERT_TRUE(looks.ok()) << looks.status();
  ASSERT_THAT(*looks, SizeIs(2));
  EXPECT_EQ((*looks)[0].error(), "");
  EXPECT_EQ((*looks)[1].host(), "node-2");
  EXPECT_THAT((*looks)[1].error(), HasSubstr("did not answer"));
}

TEST_F(LookDeskTest, AHostWhoseAgentIsGoneIsNamedAtOnce) {
  gone_ = {AgentOf("node-2").id};
  const auto looks = Look();
  ASSERT_TRUE(looks.ok()) << looks.status();
  EXPECT_THAT((*looks)[1].error(), HasSubstr("not connected"));
  EXPECT_LT(now_ns_, 1015 * kSecond);
}

TEST_F(LookDeskTest, OnlyTheNamedHostsAreAsked) {
  v1::LookRequest request;
  request.add_hosts("node-2");
  const auto looks = Look(request);
  ASSERT_TRUE(looks.ok()) << looks.status();
  EXPECT_THAT(*looks, SizeIs(1));
  EXPECT_EQ(asked_.count(AgentOf("node-1").id), 0u);
}

TEST_F(LookDeskTest, NoCallerWaitsAnyLonger) {
  silent_ = {AgentOf("node-2").id};
  goes_on_ = false;
  EXPECT_TRUE(absl::IsCancelled(Look().status()));
}

TEST_F(LookDeskTest, AWrongTimeAsksNoDaemon) {
  v1::LookRequest request;
  for (const int apart_ms : {-1, 500, 61'000}) {
    request.set_apart_ms(apart_ms);
    EXPECT_TRUE(absl::IsInvalidArgument(Look(request).status()));
  }
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(LookDeskTest, AStrangersReplyChangesNothing) {
  v1::StackReply reply;
  reply.set_request(uint64_t{1} << 63 | 77);
  EXPECT_TRUE(desk_.OnStackReply(AgentOf("node-3"), reply));
  reply.set_request(77);  // of the stack desk
  EXPECT_FALSE(desk_.OnStackReply(AgentOf("node-1"), reply));
}

TEST_F(LookDeskTest, ADaemonThatStopsBeginsNoLook) {
  desk_.Close();
  EXPECT_TRUE(absl::IsCancelled(Look().status()));
}

// Has room for the facts of one host, and for no stack.
class SmallLookTest : public LookDeskTest {
 protected:
  static LookDesk::Sizes SizeOfFacts() {
    v1::HostFacts facts;
    facts.add_facts()->set_text(AgentOf("node-1").id);
    LookDesk::Sizes most;
    most.all = facts.ByteSizeLong();
    return most;
  }
  SmallLookTest() : LookDeskTest(SizeOfFacts()) {}
};

TEST_F(SmallLookTest, FactsOfAllHostsCountAsStacksDo) {
  const auto looks = Look();
  ASSERT_TRUE(looks.ok()) << looks.status();
  ASSERT_THAT(*looks, SizeIs(2));
  EXPECT_THAT((*looks)[0].host_facts().facts(), SizeIs(1));
  EXPECT_THAT((*looks)[1].host_facts().facts(), IsEmpty());
  EXPECT_THAT((*looks)[1].host_facts().error(), HasSubstr("too large"));
}

// A look that has a place learns that no caller waits for it.
class LookPlacesTest : public LookDeskTest {
 protected:
  void SetUp() override {
    LookDeskTest::SetUp();
    silent_ = {AgentOf("node-1").id, AgentOf("node-2").id};
  }
  bool HasPlace(const Tenants& tenants, const std::string& who) {
    const absl::Status status = Look(tenants, who, [] {});
    EXPECT_TRUE(absl::IsCancelled(status) || absl::IsResourceExhausted(status)) << status;
    return absl::IsCancelled(status);
  }
  absl::Status Look(const Tenants& tenants, const std::string& who,
                    const std::function<void()>& meanwhile) {
    v1::LookRequest request;
    request.set_job("train.py");
    const auto goes_on = [&meanwhile] {
      meanwhile();
      return false;
    };
    return desk_.Look(request, tenants, who, goes_on).status();
  }
  // Does it while these callers, who see all jobs, look.
  void While(std::vector<std::string> callers, const std::function<void()>& check) {
    if (callers.empty()) return check();
    const std::string who = callers.back();
    callers.pop_back();
    Look(Tenants::All(), who, [&] { While(callers, check); }).IgnoreError();
  }
};

TEST_F(LookPlacesTest, OneCallerDoesNotTakeThePlacesOfAnother) {
  While({"ann", "ann"}, [this] {
    EXPECT_FALSE(HasPlace(Tenants::All(), "ann"));
    EXPECT_TRUE(HasPlace(Tenants::All(), "bob"));
  });
}

TEST_F(LookPlacesTest, CallersOfTheSameTenantsDoNotTakeThePlacesOfOthers) {
  While({"ann", "ann", "bob"}, [this] {
    EXPECT_FALSE(HasPlace(Tenants::All(), "bob"));
    EXPECT_FALSE(HasPlace(Tenants::All(), "carl"));
    EXPECT_TRUE(HasPlace(Tenants::Only({"default"}), "ann"));
  });
}

}  // namespace
}  // namespace rollcall

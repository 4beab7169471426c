// SPDX-License-Identifier: Apache-2.0
// The simulated NCCL hangs, errs and ends as NCCL does: each case plays one of
// sim_scenarios' scenarios as real processes and looks how far each rank gets.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Far more than a rank that gets on needs, on a machine with too few cores.
constexpr milliseconds kAmple{60000};
// How long a rank must stay where it is before it counts as hanging.
constexpr milliseconds kStill{700};

// How far a rank got.
constexpr char kInInit = 'I', kInCall = 'C', kOnStream = 'S', kRight = 'R', kWrong = 'W',
               kFailed = 'F';

// A rank that has been started; killed and reaped by its owner.
class RankProcess {
 public:
  RankProcess(const std::string& scenario, int rank, int size, const std::string& id_file,
              const std::vector<std::string>& settings) {
    std::vector<std::string> words = {"/usr/bin/env", "RANK=" + std::to_string(rank),
                                      "WORLD_SIZE=" + std::to_string(size),
                                      "ROLLCALL_TEST_ID_FILE=" + id_file};
    words.insert(words.end(), settings.begin(), settings.end());
    words.insert(words.end(), {SIM_SCENARIOS, scenario});
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(ends[1]);
    output_ = ends[0];
  }
  RankProcess(RankProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), output_(std::exchange(other.output_, -1)) {}
  ~RankProcess() { Kill(); }

  int output() const { return ended_ ? -1 : output_; }
  bool ended() const { return ended_; }
  char place() const { return place_; }

  // Reads what there is to read. At its end, the rank's exit is waited for.
  void Read() {
    char text[256];
    const ssize_t size = read(output_, text, sizeof(text));
    if (size > 0) said_.append(text, static_cast<size_t>(size));
    for (size_t end; (end = said_.find('\n')) != std::string::npos; said_.erase(0, end + 1)) {
      Note(said_.substr(0, end));
    }
    if (size == 0) Reap();
  }

  void Kill() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    Reap();
    if (output_ >= 0) close(output_);
    output_ = -1;
  }

 private:
  void Note(const std::string& word) {
    if (word == "up") place_ = kInCall;
    if (word == "returned") place_ = kOnStream;
    if (word == "right") place_ = kRight;
    if (word == "wrong") place_ = kWrong;
  }

  void Reap() {
    ended_ = true;
    int status = 0;
    if (pid_ <= 0 || waitpid(pid_, &status, 0) != pid_) return;
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;  // meant to be
    if (status != 0 && !killed) place_ = kFailed;
    pid_ = -1;
  }

  pid_t pid_ = -1;
  int output_ = -1;
  std::string said_;
  char place_ = kInInit;
  bool ended_ = false;
};

class Job {
 public:
  Job(const std::string& scenario, int size, const std::vector<std::string>& settings) {
    folder_ = testing::TempDir() + "/sim-nccl-XXXXXX";
    if (mkdtemp(folder_.data()) == nullptr) return;
    for (int rank = 0; rank < size; ++rank) {
      ranks_.emplace_back(scenario, rank, size, folder_ + "/id", settings);
    }
  }
  ~Job() {
    ranks_.clear();
    std::filesystem::remove_all(folder_);
  }

  // One letter a rank: as soon as it is `expected` and stays so, or when time is up.
  std::string Outcome(const std::string& expected) {
    const auto deadline = steady_clock::now() + kAmple;
    while (Places() != expected || !FinishedHaveEnded()) {
      if (!ReadUntil(deadline)) return Places();
    }
    const auto still_until = steady_clock::now() + kStill;
    while (Places() == expected && ReadUntil(still_until)) {
    }
    return Places();
  }

  std::string Places() const {
    std::string places;
    for (const RankProcess& rank : ranks_) places += rank.place();
    return places;
  }

 private:
  // A rank that says its work is done must also be able to exit.
  bool FinishedHaveEnded() const {
    for (const RankProcess& rank : ranks_) {
      if ((rank.place() == kRight || rank.place() == kWrong) && !rank.ended()) return false;
    }
    return true;
  }

  // Reads from one or more ranks. False if none printed anything until then.
  bool ReadUntil(steady_clock::time_point deadline) {
    std::vector<pollfd> outputs;
    bool any = false;
    for (const RankProcess& rank : ranks_) {
      outputs.push_back({rank.output(), POLLIN, 0});
      any |= !rank.ended();
    }
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    if (!any || left.count() <= 0) return false;
    if (poll(outputs.data(), outputs.size(), static_cast<int>(left.count())) <= 0) return false;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (outputs[i].revents != 0) ranks_[i].Read();
    }
    return true;
  }

  std::string folder_;
  std::vector<RankProcess> ranks_;
};

struct Case {
  const char* name;
  const char* scenario;
  std::string outcome;  // of each rank
  std::vector<std::string> settings = {};
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.scenario << " -> " << c.outcome; }

const char kWrongData[] = "ROLLCALL_SIM_MISMATCH=wrong";
const char kNoLazyConnect[] = "ROLLCALL_SIM_LAZY_CONNECT=0";
const char kCollectiveDestroy[] = "ROLLCALL_SIM_DESTROY=collective";

const Case kCases[] = {
    {"one_rank_works_alone", "healthy", "R"},
    {"four_ranks_reduce", "healthy", "RRRR"},
    {"sixty_four_ranks_reduce", "healthy", std::string(64, kRight)},
    {"many_rounds_keep_data_right", "many_rounds", "RRR"},
    {"works_without_lazy_connect", "healthy", "RRR", {kNoLazyConnect}},
    {"different_functions_hang", "different_functions", "SSS"},
    {"different_functions_hang_always", "different_functions", "SSS", {kWrongData}},
    {"different_bytes_hang", "different_bytes", "SSS"},
    {"different_bytes_end_wrong_if_told_to", "different_bytes", "WWW", {kWrongData}},
    {"different_types_end_wrong", "different_types", "WWW"},
    {"different_reductions_end_wrong", "different_reductions", "WWW"},
    {"different_roots_hang", "different_roots", "SSS"},
    {"different_order_hangs", "different_order", "SSS"},
    {"absent_rank_hangs_the_others", "first_rank_leaves", "RSS"},
    {"absent_rank_blocks_a_first_call", "first_rank_leaves_before_any_collective", "RCC"},
    {"absent_rank_blocks_no_call_without_lazy_connect",
     "first_rank_leaves_before_any_collective",
     "RSS",
     {kNoLazyConnect}},
    {"killed_rank_hangs_the_others", "first_rank_is_killed", "RSS"},
    {"count_zero_is_dropped_locally", "nothing_to_reduce_on_first_rank", "RSS"},
    {"init_waits_for_an_absent_rank", "first_rank_never_initializes", "RII"},
    {"crossing_sends_block_the_host", "crossing_sends", "CC"},
    {"crossing_sends_hang_on_the_stream", "crossing_sends", "SS", {kNoLazyConnect}},
    {"crossing_sends_in_a_group_end", "grouped_crossing_sends", "RRRR"},
    {"sends_of_different_bytes_hang", "sends_of_different_bytes", "SS"},
    {"unreceived_send_blocks_the_host", "send_nobody_receives", "CR"},
    {"unreceived_send_hangs_on_the_stream", "send_nobody_receives", "SR", {kNoLazyConnect}},
    {"sends_stay_in_order", "sends_stay_in_order", "RR"},
    {"send_to_self_needs_a_receive", "send_to_self", "RR"},
    {"groups_nest_and_mix", "nested_mixed_group", "RRR"},
    {"order_holds_over_streams", "crossed_streams", "RRRR"},
    {"abort_frees_stream", "abort_frees_stream", "RRR"},
    {"abort_frees_host", "abort_frees_host", "RRR"},
    {"revoke_frees_stream", "revoke_frees_stream", "RRR"},
    {"split_makes_parts_by_color_and_key", "split_by_parity", "RRRRR"},
    {"shrink_goes_on_without_a_rank", "shrink_without_first", "RRR"},
    {"non_blocking_reports_progress", "non_blocking", "RRR"},
    {"non_blocking_init_can_be_aborted", "non_blocking_init_alone", "RRR"},
    {"wrong_arguments_have_no_effect", "wrong_arguments", "RR"},
    {"exit_does_not_wait_for_collectives", "exits_midway", "RRR"},
    {"finalize_waits_for_own_work", "finalize_waits_for_work", "RCC"},
    {"destroy_waits_for_nobody", "destroy_without_the_others", "RRR"},
    {"destroy_waits_for_all_if_told_to", "destroy_without_the_others", "RCC", {kCollectiveDestroy}},
};

class SimNcclTest : public testing::TestWithParam<Case> {};

TEST_P(SimNcclTest, EndsAsExpected) {
  const Case& c = GetParam();
  Job job(c.scenario, static_cast<int>(c.outcome.size()), c.settings);
  EXPECT_EQ(job.Outcome(c.outcome), c.outcome);
}

INSTANTIATE_TEST_SUITE_P(Sim, SimNcclTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// The killed job and the next meet under the same name.
TEST(SimNcclAfterKill, LeavesNothingThatBreaksTheNextJob) {
  const std::vector<std::string> settings = {"NCCL_COMM_ID=127.0.0.1:" + std::to_string(getpid())};
  {
    Job killed("first_rank_never_initializes", 3, settings);
    ASSERT_EQ(killed.Outcome("RII"), "RII");
  }
  Job next("healthy", 3, settings);
  EXPECT_EQ(next.Outcome("RRR"), "RRR");
}

}  // namespace

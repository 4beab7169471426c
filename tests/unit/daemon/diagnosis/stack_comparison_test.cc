// SPDX-License-Identifier: Apache-2.0
// Two stacks of one program, and how the culprit departs from the rank that waits.
#include "daemon/diagnosis/stack_comparison.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace rollcall {
namespace {

using Kind = StackDeparture::Kind;
using Habit = CulpritsCall::Habit;

CodeBlock Block(CodeBlock::Kind kind, int first, int last) {
  CodeBlock block;
  block.kind = kind;
  block.first = first;
  block.last = last;
  return block;
}
CodeBlock Loop(int first, int last) { return Block(CodeBlock::Kind::kLoop, first, last); }
CodeBlock If(int first, int last) { return Block(CodeBlock::Kind::kCondition, first, last); }
CodeBlock BranchOf(int decides_at, int first, int last) {
  CodeBlock block = If(first, last);
  block.decides_at = decides_at;
  return block;
}

// All ranks come by it.
CodeBlock Periodic(int32_t first, int32_t last) {
  CodeBlock block = If(first, last);
  block.is_periodic = true;
  return block;
}
CodeBlock Except(int first, int last) { return Block(CodeBlock::Kind::kHandler, first, last); }

// A frame whose blocks are known, those around its line only.
ProgramFrame At(const std::string& function, int line, std::vector<CodeBlock> blocks = {}) {
  return {function, "/x/train.py", line, true, std::move(blocks)};
}

// A frame of C++, or of Python whose file cannot be read.
ProgramFrame Bare(const std::string& function, int line) {
  return {function, "/x/train.cc", line, false, {}};
}

const CulpritsCall kUsual = {Habit::kUsual, true};
const CulpritsCall kAlike = {Habit::kAlike, true};
const CulpritsCall kUnknownAndDirect = {Habit::kUnknown, true, false, false, true};
const CulpritsCall kAlikeAndDirect = {Habit::kAlike, true, false, false, true};
const CulpritsCall kNew = {Habit::kNew, true};
const CulpritsCall kCalls = {Habit::kUnknown, true};
const CulpritsCall kElsewhere = {Habit::kUnknown, false};
const CulpritsCall kRepeats = {Habit::kUsual, true, true};
const CulpritsCall kBeforeADirectCall = {Habit::kUsual, true, false, true};

CodeBlock LoopThatSkips(int first, int last, int at) {
  CodeBlock loop = Loop(first, last);
  loop.skips_at = at;
  return loop;
}

// A branch whose last line, `at`, ends the pass or the function.
CodeBlock BranchThatEnds(int first, int last) {
  CodeBlock block = If(first, last);
  block.ends_at = last;
  return block;
}

struct Case {
  const char* name;
  std::vector<ProgramFrame> culprit, waiter;
  CulpritsCall call;
  Kind kind;
};

// A frame of a function that may return before its line.
ProgramFrame MayReturn(const std::string& function, int line, int returns_at) {
  ProgramFrame frame = At(function, line);
  frame.returns_at = returns_at;
  return frame;
}

const Case kCases[] = {
    {"others_returned_before_the_call_and_train_on",
     {At("fit", 50, {Loop(48, 50)}), MayReturn("save", 46, 43)},
     {At("fit", 49, {Loop(48, 50)}), At("train_epoch", 32, {Loop(31, 36)})},
     kNew,
     Kind::kExtra},
    {"left_the_inner_loop_of_an_epoch",
     {At("fit", 50, {Loop(48, 50)}), At("save", 46)},
     {At("fit", 49, {Loop(48, 50)}), At("train_epoch", 32, {Loop(31, 36)})},
     kNew,
     Kind::kLeftLoop},
    {"still_in_the_loop_of_a_function_that_the_others_have_left",
     {At("main", 48), At("fit", 33, {Loop(32, 34)})},
     {At("main", 49), At("finish", 40)},
     kUsual,
     Kind::kStays},
    {"validates_in_a_function_with_a_loop",
     {At("main", 48), At("validate", 33, {Loop(32, 34)})},
     {At("main", 49), At("finish", 40)},
     kNew,
     Kind::kExtra},
    {"part_of_forward_left_out",
     {At("step", 9), At("forward", 38)},
     {At("step", 9), At("forward", 34, {If(33, 34)})},
     kUsual,
     Kind::kSkipped},
    {"later_line_without_a_loop", {At("main", 12)}, {At("main", 10)}, kCalls, Kind::kSkipped},
    {"earlier_line_without_a_loop", {At("main", 8)}, {At("main", 10)}, kCalls, Kind::kExtra},
    {"rest_of_the_pass_left_out",
     {At("train", 20, {Loop(19, 25)})},
     {At("train", 21, {Loop(19, 25)})},
     kUsual,
     Kind::kSkipped},
    {"average_for_the_log_at_the_end_of_the_body",
     {At("train", 24, {Loop(19, 24), If(23, 24)})},
     {At("train", 20, {Loop(19, 24)})},
     kNew,
     Kind::kExtra},
    {"handler_reports_its_error",
     {At("train", 24, {Loop(19, 24), Except(23, 24)})},
     {At("train", 20, {Loop(19, 24)})},
     kNew,
     Kind::kExtra},
    {"forward_pass_in_a_branch",
     {At("train", 20, {Loop(18, 24), If(19, 20)})},
     {At("train", 21, {Loop(18, 24)})},
     kAlike,
     Kind::kExtra},
    {"all_ranks_log_in_each_second_step",
     {At("train", 24, {Loop(18, 24), Periodic(23, 24)}), At("log", 5)},
     {At("train", 21, {Loop(18, 24)})},
     kAlikeAndDirect,
     Kind::kSkipped},
    {"others_have_a_condition_and_all_log_in_each_second_step",
     {At("train", 24, {Loop(18, 24), Periodic(23, 24)}), At("log", 5)},
     {At("train", 21, {Loop(18, 24), If(20, 21)})},
     kUnknownAndDirect,
     Kind::kSkipped},
    {"one_rank_logs_in_each_second_step",
     {At("train", 24, {Loop(18, 24), Periodic(22, 24), If(23, 24)}), At("log", 5)},
     {At("train", 21, {Loop(18, 24)})},
     kAlikeAndDirect,
     Kind::kExtra},
    {"a_library_works_in_each_second_step",
     {At("train", 24, {Loop(18, 24), Periodic(23, 24)}), At("validate", 5)},
     {At("train", 21, {Loop(18, 24)})},
     kAlike,
     Kind::kExtra},
    {"forward_pass_of_the_next_step",
     {At("train", 20, {Loop(18, 24)})},
     {At("train", 21, {Loop(18, 24)})},
     kAlike,
     Kind::kSkipped},
    {"called_again_in_a_branch_below",
     {At("train", 20, {Loop(18, 24)}), At("next_good", 92, {If(91, 92)})},
     {At("train", 22, {Loop(18, 24)})},
     kAlike,
     Kind::kExtra},
    {"asks_at_the_head_and_left_passes_out",
     {At("rounds", 18, {Loop(18, 24)}), At("busy", 3)},
     {At("rounds", 22, {Loop(18, 24), If(20, 22), Loop(21, 22)}), At("pass", 7)},
     kCalls,
     Kind::kSkipped},
    {"others_have_a_condition_that_it_has_not",
     {At("train", 24, {Loop(19, 24)})},
     {At("train", 21, {Loop(19, 24), If(20, 21)})},
     kCalls,
     Kind::kSkipped},
    {"evaluates_one_batch_more",
     {At("main", 24, {Loop(19, 24)}), At("evaluate", 8, {Loop(5, 8)})},
     {At("main", 22, {Loop(19, 24), Loop(21, 22)}), At("step", 31)},
     kRepeats,
     Kind::kExtra},
    {"leaves_training_out_and_evaluates",
     {At("main", 24, {Loop(19, 24)}), At("evaluate", 8, {Loop(5, 8)})},
     {At("main", 22, {Loop(19, 24), Loop(21, 22)}), At("step", 31)},
     kUsual,
     Kind::kSkipped},
    {"made_a_step_more_before_a_call_of_each_pass",
     {At("main", 21, {Loop(19, 24)}), At("step", 31)},
     {At("main", 22, {Loop(19, 24)})},
     kBeforeADirectCall,
     Kind::kExtra},
    {"went_on_before_a_call_of_each_pass",
     {At("main", 21, {LoopThatSkips(19, 24, 20)}), At("step", 31)},
     {At("main", 22, {LoopThatSkips(19, 24, 20)})},
     kBeforeADirectCall,
     Kind::kSkipped},
    {"left_out_a_call_in_a_branch",
     {At("main", 21, {Loop(19, 24)}), At("step", 31)},
     {At("main", 23, {Loop(19, 24), If(22, 23)})},
     kBeforeADirectCall,
     Kind::kSkipped},
    {"left_out_a_call_of_a_function_below",
     {At("main", 21, {Loop(19, 24)}), At("step", 31)},
     {At("main", 22, {Loop(19, 24)}), At("share", 5)},
     kBeforeADirectCall,
     Kind::kSkipped},
    {"leaves_the_function_before_the_call",
     {At("step", 31, {BranchThatEnds(30, 31)}), At("exchange_status", 25)},
     {At("step", 32), At("moe_layer", 10)},
     kAlike,
     Kind::kSkipped},
    {"leaves_the_function_with_a_call_of_its_own",
     {At("step", 31, {BranchThatEnds(30, 31)}), At("give_up", 25)},
     {At("step", 32), At("moe_layer", 10)},
     kNew,
     Kind::kExtra},
    {"a_branch_that_goes_on_is_beside_the_call",
     {At("step", 31, {If(30, 31)}), At("exchange_status", 25)},
     {At("step", 32), At("moe_layer", 10)},
     kAlike,
     Kind::kExtra},
    {"one_loop_and_no_past",
     {At("train", 24, {Loop(19, 24)})},
     {At("train", 21, {Loop(19, 24)})},
     kCalls,
     Kind::kUnknown},
    {"fetches_once_more",
     {At("train", 50, {Loop(49, 60)}), At("next_good", 30, {If(29, 30)})},
     {At("train", 52, {Loop(49, 60)})},
     kNew,
     Kind::kExtra},
    {"stops_early",
     {At("train", 86)},
     {At("train", 77, {Loop(74, 85), Loop(75, 78)})},
     kNew,
     Kind::kLeftLoop},
    {"left_a_function_with_a_loop",
     {At("main", 31)},
     {At("main", 30), At("train", 9, {Loop(8, 12)})},
     kNew,
     Kind::kLeftLoop},
    {"left_a_function_without_a_loop",
     {At("main", 31)},
     {At("main", 30), At("setup", 9)},
     kNew,
     Kind::kSkipped},
    {"has_fewer_batches_in_an_epoch",
     {At("train", 24, {Loop(19, 24)})},
     {At("train", 21, {Loop(19, 24), Loop(20, 22)})},
     kNew,
     Kind::kLeftLoop},
    {"accumulates_fewer_micro_batches",
     {At("train", 24, {Loop(19, 24)})},
     {At("train", 21, {Loop(19, 24), Loop(20, 22)})},
     kUsual,
     Kind::kSkipped},
    {"at_the_head_of_the_loop",
     {At("loop", 9, {Loop(9, 20)})},
     {At("loop", 11, {Loop(9, 20), If(10, 11)}), At("propose", 3, {Loop(2, 4)})},
     kUsual,
     Kind::kSkipped},
    {"logs_between_epochs",
     {At("train", 24, {Loop(19, 24), If(23, 24)})},
     {At("train", 21, {Loop(19, 24), Loop(20, 22)})},
     kNew,
     Kind::kExtra},
    {"has_more_batches",
     {At("train", 21, {Loop(20, 22)})},
     {At("train", 30)},
     kUsual,
     Kind::kStays},
    {"waits_in_an_own_loop_behind_theirs",
     {At("main", 31, {Loop(30, 32)})},
     {At("main", 10)},
     kCalls,
     Kind::kSkipped},
    {"branch_below_one_line",
     {At("main", 5), At("A.forward", 9)},
     {At("main", 5), At("B.forward", 19)},
     kUsual,
     Kind::kSkipped},
    {"hook_below_one_line",
     {At("main", 5), At("on_epoch_end", 9)},
     {At("main", 5)},
     kNew,
     Kind::kExtra},
    {"one_place", {At("main", 5)}, {At("main", 5)}, kNew, Kind::kUnknown},
    {"other_programs", {At("serve", 5)}, {At("main", 5)}, kNew, Kind::kUnknown},
    {"no_stack", {}, {At("main", 5)}, kNew, Kind::kUnknown},
    // Not in a call.
    {"uploads_before_the_step",
     {At("train", 20, {Loop(19, 25)}), At("upload", 3)},
     {At("train", 21, {Loop(19, 25)})},
     kElsewhere,
     Kind::kBusy},
    {"saves_after_the_step",
     {At("train", 24, {Loop(19, 25), If(23, 24)}), At("save", 3)},
     {At("train", 21, {Loop(19, 25)})},
     kElsewhere,
     Kind::kBusy},
    {"works_behind_the_loop",
     {At("train", 30)},
     {At("train", 21, {Loop(19, 25)})},
     kElsewhere,
     Kind::kLeftLoop},
    {"works_behind_a_barrier",
     {At("main", 12)},
     {At("main", 10, {If(9, 10)})},
     kElsewhere,
     Kind::kSkipped},
    {"works_before_a_barrier",
     {At("main", 9, {If(8, 9)})},
     {At("main", 10)},
     kElsewhere,
     Kind::kBusy},
    {"works_between_epochs",
     {At("train", 24, {Loop(19, 24)})},
     {At("train", 21, {Loop(19, 24), Loop(20, 22)})},
     kElsewhere,
     Kind::kBusy},
    // Without the source only the past shows it.
    {"bare_usual", {Bare("train", 30)}, {Bare("train", 20)}, kUsual, Kind::kSkipped},
    {"bare_new_and_earlier", {Bare("train", 10)}, {Bare("train", 20)}, kNew, Kind::kExtra},
    {"bare_new_and_later", {Bare("train", 30)}, {Bare("train", 20)}, kNew, Kind::kUnknown},
    {"bare_and_elsewhere", {Bare("train", 30)}, {Bare("train", 20)}, kElsewhere, Kind::kUnknown},
    {"bare_and_not_there_yet", {Bare("train", 10)}, {Bare("train", 20)}, kElsewhere, Kind::kBusy},
};

class StackComparisonTest : public testing::TestWithParam<Case> {};

TEST_P(StackComparisonTest, Finds) {
  const Case& c = GetParam();
  EXPECT_EQ(CompareStacks(c.culprit, c.waiter, c.call).kind, c.kind);
}

INSTANTIATE_TEST_SUITE_P(Stacks, StackComparisonTest, testing::ValuesIn(kCases),
                         [](const auto& row) { return std::string(row.param.name); });

// Fewer passes, or passes without the call: what the source of the loop lets a rank do.
TEST(StackDepartureTest, FindsWhatMayEndAPassBeforeTheCall) {
  CodeBlock continues = Loop(74, 85), breaks = Loop(74, 85), both = Loop(74, 85);
  continues.skips_at = both.skips_at = 75;
  breaks.ends_at = both.ends_at = 80;
  const CodeBlock periodic = Periodic(76, 77);
  for (const auto& [blocks, line] :
       std::vector<std::pair<std::vector<CodeBlock>, int>>{{{Loop(74, 85)}, 0},
                                                           {{continues}, 75},
                                                           {{breaks}, 0},
                                                           {{both}, 0},
                                                           {{Loop(74, 85), If(76, 77)}, 76},
                                                           {{Loop(74, 85), periodic}, 0},
                                                           {{If(70, 90), Loop(74, 85)}, 0}}) {
    const StackDeparture found = CompareStacks({At("train", 86)}, {At("train", 77, blocks)}, kNew);
    EXPECT_EQ(found.kind, Kind::kLeftLoop);
    EXPECT_EQ(found.condition_line, line);
  }
}

// A library may leave out its call there, but the program cannot leave out the line.
TEST(StackDepartureTest, KnowsWhetherEachPassComesToTheOthersLine) {
  const std::vector<ProgramFrame> culprit = {At("main", 21, {Loop(19, 24)})};
  for (const auto& [waiter, in_each_pass] : std::vector<std::pair<std::vector<ProgramFrame>, bool>>{
           {{At("main", 22, {Loop(19, 24)})}, true},
           {{At("main", 22, {LoopThatSkips(19, 24, 20)})}, false},
           {{At("main", 23, {Loop(19, 24), If(22, 23)})}, false},
           {{At("main", 22, {Loop(19, 24)}), At("share", 5)}, false},
           {{At("main", 22)}, false}}) {
    const StackDeparture found = CompareStacks(culprit, waiter, kAlike);
    EXPECT_EQ(found.kind, Kind::kSkipped);
    EXPECT_EQ(found.in_each_pass, in_each_pass);
  }
}

TEST(StackDepartureTest, NamesTheConditionThatSendsTheSidesIntoTwoBranches) {
  const CodeBlock whole = BranchOf(40, 40, 60), one = BranchOf(40, 42, 49);
  const CodeBlock other = BranchOf(40, 51, 60), inner = BranchOf(53, 53, 55);
  const auto decides_at = [](int culprit, std::vector<CodeBlock> culprits_blocks, int waiter,
                             std::vector<CodeBlock> waiters_blocks) {
    return CompareStacks({At("train", culprit, std::move(culprits_blocks))},
                         {At("train", waiter, std::move(waiters_blocks))}, kCalls)
        .decides_at;
  };
  EXPECT_EQ(decides_at(44, {one}, 52, {other}), 40);
  EXPECT_EQ(decides_at(52, {other}, 44, {one}), 40);
  EXPECT_EQ(decides_at(44, {one}, 54, {other, inner}), 40);
  EXPECT_EQ(decides_at(44, {whole, one}, 52, {whole, other}), 40) << "a match around its cases";
  EXPECT_EQ(decides_at(45, {one}, 44, {one}), 0);
  EXPECT_EQ(decides_at(70, {}, 44, {one}), 0);
  EXPECT_EQ(decides_at(44, {If(43, 45)}, 52, {If(51, 60)}), 0) << "an agent that does not say it";
}

TEST(StackDepartureTest, NamesTheLinesTheLoopAndTheCondition) {
  const StackDeparture left = CompareStacks({At("main", 3), At("train", 86)},
                                            {At("main", 3), At("train", 77, {Loop(74, 85)})}, kNew);
  EXPECT_EQ(left.function, "train");
  EXPECT_EQ(left.culprit_line, 86);
  EXPECT_EQ(left.waiter_line, 77);
  EXPECT_EQ(left.loop_first, 74);
  EXPECT_EQ(left.loop_last, 85);
  const StackDeparture extra = CompareStacks({At("train", 24, {Loop(19, 24), If(23, 24)})},
                                             {At("train", 20, {Loop(19, 24)})}, kNew);
  EXPECT_EQ(extra.condition_line, 23);
  const StackDeparture returned =
      CompareStacks({At("fit", 50, {Loop(48, 50)}), MayReturn("save", 46, 43)},
                    {At("fit", 49, {Loop(48, 50)}), At("train_epoch", 32, {Loop(31, 36)})}, kNew);
  EXPECT_EQ(returned.returns_at, 43);
  EXPECT_EQ(returned.returns_from, "save");
}

}  // namespace
}  // namespace rollcall

// SPDX-License-Identifier: Apache-2.0
// The advice for verdicts on real programs of many frameworks, with the stacks that were recorded
// (tests/torch/record_stacks.py): which piece comes first, and which must not be there.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/read_file.h"
#include "daemon/diagnosis/advice.h"
#include "daemon/diagnosis/verdict_departure.h"
#include "daemon/report/program_line.h"
#include "google/protobuf/util/json_util.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

struct Program {
  const char* name;
  std::vector<const char*> first;  // one of these comes first
};

v1::Incident Read(const std::string& program) {
  const std::string text =
      ReadFile(std::string(FRAMEWORK_STACKS) + "/" + program + ".json").value_or("");
  v1::Incident incident;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(text, &incident).ok()) << program;
  EXPECT_EQ(incident.verdicts_size(), 1) << program;
  return incident;
}

CallArgs CallFrom(const v1::Call& call) {
  CallArgs args;
  for (int op = 0; op < 256; ++op) {
    const char* name = OpName(static_cast<Op>(op));
    if (name != nullptr && name == call.operation()) args.op = static_cast<Op>(op);
  }
  args.count = static_cast<uint64_t>(call.count());
  args.peer = call.root();
  return args;
}

Cause CauseFrom(const std::string& name) {
#define X(cause, text) \
  if (name == text) return Cause::cause;
  ROLLCALL_CAUSES(X)
#undef X
  ADD_FAILURE() << name;
  return Cause::kMissingRank;
}

Verdict VerdictFrom(const v1::Incident& incident) {
  const v1::Verdict& recorded = incident.verdicts(0);
  Verdict v;
  v.cause = CauseFrom(recorded.cause());
  v.position = static_cast<uint64_t>(recorded.call().position());
  v.communicator_size = recorded.communicator().size();
  v.call = CallFrom(recorded.call());
  v.mismatched_fields.assign(recorded.mismatched_fields().begin(),
                             recorded.mismatched_fields().end());
  v.divergence = recorded.divergence().empty() ? DivergenceKind::kNone : DivergenceKind::kReplaced;
  v.waiting_ranks.assign(recorded.waiting_ranks().begin(), recorded.waiting_ranks().end());
  for (const v1::Culprit& known : recorded.culprits()) {
    Culprit culprit;
    culprit.process = known.rank();
    culprit.rank = known.rank();
    culprit.pid = 1;
    culprit.call = CallFrom(known.call());
    culprit.wait_channel = incident.stacks(0).threads(0).wait_channel();
    v.culprits.push_back(culprit);
  }
  v.places = {FindPlace(incident.stacks(0))};
  if (incident.stacks_size() > 1) v.waiting_place = FindPlace(incident.stacks(1));
  AddDeparture(JobState(), &v);  // the past of the ranks is not recorded
  return v;
}

const Program kPrograms[] = {
    {"loops.swallowed_error", {"skipped-call", "uneven-inputs"}},
    {"loops.continue_on_nan", {"skipped-call", "uneven-inputs"}},
    {"loops.early_stopping", {"uneven-inputs"}},
    {"loops.stalled_worker", {"data-loader"}},
    {"loops.stuck_in_compile", {"compiles-alone"}},
    {"loops.slow_download", {"downloads-alone"}},
    {"loops.breakpoint_left", {"debugger-prompt"}},
    {"loops.upload_waits", {"waits-for-a-thread", "look-at-absent-rank"}},
    {"loops.collective_in_log", {"logs-alone", "collective-on-one-rank", "extra-call"}},
    {"fsdp2.full_tensor_in_log", {"logs-alone", "collective-on-one-rank", "extra-call"}},
    {"fsdp2.clips_alone", {"clips-alone", "extra-call"}},
    {"fsdp2.saves_on_rank0", {"rank0-only-checkpoint"}},
    {"fsdp2.validates_on_rank0", {"validates-alone", "extra-call"}},
    {"fsdp2.skips_backward", {"skipped-call"}},
    {"tensor_parallel.logs_a_weight", {"logs-alone", "extra-call"}},
    {"tensor_parallel.other_length", {"same-arguments-everywhere", "uneven-inputs"}},
    {"tensor_parallel.skips_on_one_rank", {"skipped-call", "uneven-inputs"}},
    {"pipelines.first_stage_has_no_data",
     {"waits-for-a-thread", "data-loader", "look-at-absent-rank"}},
    {"checkpoints.dcp_on_rank0", {"rank0-only-checkpoint", "extra-call"}},
    {"checkpoints.writer_waits", {"saves-alone", "waits-for-a-thread"}},
    {"checkpoints.load_fails_on_one", {"skipped-call"}},
    {"objects.other_source", {"root-differs"}},
    {"objects.nothing_to_gather", {"skipped-call"}},
    {"objects.reports_its_error", {"extra-call"}},
    {"objects.new_group_on_some", {"split-on-all-ranks", "mixed-backends"}},
    {"objects.computes_on_rank0", {"metric-on-some-ranks"}},
    {"objects.other_metric", {"metric-on-some-ranks"}},
    {"with_accelerate.waits_on_main_process", {"extra-call"}},
    {"with_accelerate.gathers_on_main_process", {"extra-call"}},
    {"with_accelerate.breaks_alone", {"uneven-inputs"}},
    {"with_accelerate.uneven_gather", {"uneven-inputs"}},
    {"with_trainer.evaluates_on_rank0", {"validates-alone", "buffer-broadcast"}},
    {"with_trainer.stops_alone", {"uneven-inputs"}},
    {"with_trainer.waits_in_training_step", {"waits-for-a-thread", "look-at-absent-rank"}},
    {"with_lightning.logs_on_rank_zero", {"metric-on-some-ranks", "logs-alone"}},
    {"with_lightning.saves_on_rank_zero", {"rank0-only-checkpoint", "extra-call"}},
    {"with_lightning.stops_alone_in_lightning", {"uneven-inputs"}},
    {"with_deepspeed.skips_an_expert", {"skipped-call"}},
    {"with_deepspeed.gathers_on_rank0", {"extra-call"}},
    {"with_deepspeed.zero_saves_on_rank0", {"rank0-only-checkpoint", "extra-call"}},
    {"with_deepspeed.stage_without_data",
     {"waits-for-a-thread", "data-loader", "look-at-absent-rank"}},
    {"with_megatron.drops_bad_labels", {"skipped-call", "uneven-inputs"}},
    {"with_megatron.megatron_waits_for_data",
     {"waits-for-a-thread", "data-loader", "look-at-absent-rank"}},
    {"titan.logs_on_rank0", {"logs-alone", "collective-on-one-rank", "extra-call"}},
    {"titan.loader_ends_early", {"uneven-inputs"}},
    {"titan.stages_a_checkpoint", {"waits-for-a-thread", "saves-alone"}},
    {"engine.worker_left_its_loop", {"engine-worker-stopped"}},
};

TEST(FrameworkAdviceTest, TheFirstPieceFits) {
  for (const Program& program : kPrograms) {
    const Verdict v = VerdictFrom(Read(program.name));
    const std::vector<Advice> advice = AdviceFor(v);
    bool fits = false;
    for (const char* id : program.first) fits = fits || advice.front().id == id;
    EXPECT_TRUE(fits) << program.name << ": " << advice.front().id << " "
                      << static_cast<int>(v.departure.kind)
                      << "\nculprit: " << v.places[0].functions
                      << "\nwaits: " << v.waiting_place.functions;
  }
}

// A mistake that the stacks show is shown by one entry, or by two that a person cannot distinguish.
TEST(FrameworkAdviceTest, AStackFitsFewEntries) {
  for (const Program& program : kPrograms) {
    const Verdict v = VerdictFrom(Read(program.name));
    std::string fitting;
    int count = 0;
    for (const AdviceEntry& entry : StackAdvice()) {
      if (!entry.fits(v)) continue;
      ++count;
      fitting += std::string(" ") + entry.id;
    }
    EXPECT_LE(count, 2) << program.name << fitting;
  }
}

}  // namespace
}  // namespace rollcall
